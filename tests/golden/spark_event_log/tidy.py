"""Makes a golden file from a real event log: leaves out what no decoder reads and what names the machine.

``python tidy.py RAW TARGET``: lines keep their order, events keep the fields the decoder reads with their
values; environment, properties, call sites, accumulators and host names go. A target ending in ``.zstd`` is
compressed.
"""

import json
import re
import sys
from pathlib import Path

import zstandard

KEPT_PROPERTIES = ("sql.streaming.queryId", "streaming.sql.batchId", "spark.sql.execution.id")
EMPTIED = ("SparkListenerEnvironmentUpdate", "SparkListenerResourceProfileAdded")


def tidy(event: dict) -> dict:
    """The event without what is private or only long."""
    if event["Event"] in EMPTIED:
        return {"Event": event["Event"]}
    if "User" in event:
        event["User"] = "demo"
    if "Properties" in event:
        event["Properties"] = {
            key: event["Properties"][key] for key in KEPT_PROPERTIES if key in event["Properties"]
        }
    for stage in [event.get("Stage Info"), *event.pop("Stage Infos", [])]:
        if stage:
            stage |= {"Details": "", "Accumulables": []}
            stage["Stage Name"] = re.sub(r"/\S*/", "", stage["Stage Name"])
            stage["RDD Info"] = [
                {key: rdd[key] for key in ("RDD ID", "Name", "Scope", "Parent IDs") if key in rdd}
                for rdd in stage["RDD Info"]
            ]
    if "Task Info" in event:
        event["Task Info"]["Accumulables"] = []
        event.pop("Task Executor Metrics", None)
    reason = event.get("Task End Reason", {})
    for field in ("Stack Trace", "Full Stack Trace", "Accumulator Updates", "Description", "Loss Reason"):
        reason.pop(field, None)
    if "Removed Reason" in event:
        event["Removed Reason"] = event["Removed Reason"].splitlines()[0][:80]
    return event


def without_hosts(value: object) -> object:
    """Host names and addresses replaced, wherever they are."""
    if isinstance(value, dict):
        return {
            key: "host" if key in ("Host", "Hostname") else {} if key == "Log Urls" else without_hosts(item)
            for key, item in value.items()
        }
    return [without_hosts(item) for item in value] if isinstance(value, list) else value


def main(raw: Path, target: Path) -> None:
    """Tidy one log file."""
    data = raw.read_bytes()
    if raw.suffix == ".zstd":
        data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    lines = [
        json.dumps(without_hosts(tidy(json.loads(line))), separators=(",", ":")) for line in data.splitlines()
    ]
    text = "".join(line + "\n" for line in lines if "sql.execution.ui" not in line[:60]).encode()
    target.write_bytes(zstandard.ZstdCompressor(9).compress(text) if target.suffix == ".zstd" else text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
