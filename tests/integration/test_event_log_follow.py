"""Following an event log while it grows: every complete line once, whatever happens in between."""

import itertools
import json
import shutil
from pathlib import Path

import pytest
import zstandard

from analytics.decode.batch import merge_batches
from analytics.decode.event_log_files import UnreadableLogError, is_finished
from analytics.decode.event_log_follower import Follower, LogReplacedError, Position, read_new
from analytics.decode.spark_event_log import SparkEventLogDecoder
from tests.support.spark_log import codes, rows
from workers.collectors.event_log import EventLogCollector, find_logs

GOLDEN = Path(__file__).parents[1] / "golden" / "spark_event_log"
PLAIN = GOLDEN / "app-20261121111734-0000"
ROLLING = GOLDEN / "eventlog_v2_local-1795259882760"


class Log:
    """Read with a follower kept open, and beside it anew from the stored position each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.follower = Follower(path)
        self.position: Position | None = None

    def new(self, limit_bytes: int = 1 << 20) -> list[bytes]:
        lines = self.follower.read(limit_bytes)
        again, position, _ = read_new(self.path, self.position, limit_bytes)
        assert again == lines
        assert position == self.follower.position
        self.position = json.loads(json.dumps(position))
        return lines


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.fixture
def rolling(tmp_path: Path) -> Path:
    directory = tmp_path / "eventlog_v2_app-1"
    directory.mkdir()
    (directory / "appstatus_app-1.inprogress").touch()
    (directory / ".appstatus_app-1.inprogress.crc").touch()
    return directory


def test_a_half_written_line_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "app-1.inprogress"
    append(path, b"one\ntw")
    log = Log(path)
    assert log.new() == [b"one"]
    assert log.new() == []
    append(path, b"o\nthree\n")
    assert log.new() == [b"two", b"three"]
    assert log.new() == []


def test_reading_goes_on_when_spark_takes_inprogress_away(tmp_path: Path) -> None:
    path = tmp_path / "app-1.inprogress"
    append(path, b"one\n")
    log = Log(tmp_path / "app-1")
    assert log.new() == [b"one"]
    append(path, b"two\n")
    path.rename(tmp_path / "app-1")
    assert log.new() == [b"two"]
    assert is_finished(tmp_path / "app-1")


def test_files_follow_each_other_by_number_and_a_cut_line_at_the_end_of_one_is_reported(
    rolling: Path,
) -> None:
    log = Log(rolling)
    assert log.new() == []
    append(rolling / "events_9_app-1", b"one\ntwo\nthr")
    assert log.new() == [b"one", b"two"]
    append(rolling / "events_10_app-1", b"four\n")
    append(rolling / "events_11_app-1", b"five\n")
    assert log.new() == [b"four", b"five"]
    assert [item.code for item in log.follower.take_diagnostics()] == ["truncated_line"]
    assert log.new() == []
    assert not is_finished(rolling)


def test_a_zstd_frame_is_read_as_far_as_it_has_been_flushed(rolling: Path) -> None:
    path = rolling / "events_1_app-1.zstd"
    frame = zstandard.ZstdCompressor().compressobj()
    log = Log(rolling)
    append(path, frame.compress(b"one\ntwo\n") + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    assert log.new() == [b"one", b"two"]
    block = frame.compress(b"three\nfour\n") + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    append(path, block[:5])
    assert log.new() == []
    append(path, block[5:])
    assert log.new() == [b"three", b"four"]
    append(path, frame.flush() + zstandard.ZstdCompressor().compress(b"five\n"))
    assert log.new() == [b"five"]


@pytest.mark.parametrize("name", [PLAIN.name, ROLLING.name])
@pytest.mark.parametrize("step", [997, 20_011])
def test_a_log_that_grows_byte_by_byte_gives_every_line_once(tmp_path: Path, name: str, step: int) -> None:
    source = GOLDEN / name
    target = tmp_path / name
    files = (
        [source]
        if source.is_file()
        else sorted(source.glob("events_*"), key=lambda f: int(f.name.split("_")[1]))
    )
    if source.is_dir():
        target.mkdir()
    log, lines = Log(target), []
    for file in files:
        data = file.read_bytes()
        for at in range(0, len(data), step):
            append(target / file.name if source.is_dir() else target, data[at : at + step])
            lines += log.new()
    assert lines == list(Follower(source).remaining())


def test_a_small_limit_gives_the_log_piece_by_piece() -> None:
    whole = list(Follower(ROLLING).remaining())
    pieces, position = [], None
    while True:
        lines, position, _ = read_new(ROLLING, position, limit_bytes=1)
        if not lines:
            break
        pieces.append(lines)
    assert list(itertools.chain.from_iterable(pieces)) == whole
    assert len(pieces) > 5


def test_a_log_that_shrank_or_begins_differently_is_not_taken_for_the_same(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    path.write_bytes(b"one\ntwo\n")
    follower = Follower(path)
    assert len(follower.read()) == 2
    path.write_bytes(b"one\n")
    for reader in (follower, Follower(path, follower.position)):
        with pytest.raises(LogReplacedError, match="shorter"):
            reader.read()
    path.write_bytes(b"ten\nfour\nfive\n")
    with pytest.raises(LogReplacedError, match="begins differently"):
        read_new(path, follower.position)


def test_a_copy_with_the_same_beginning_is_the_same_log(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    path.write_bytes(b"one\n")
    follower = Follower(path)
    assert follower.read() == [b"one"]
    (tmp_path / "copy").write_bytes(b"one\ntwo\n")
    (tmp_path / "copy").rename(path)
    assert follower.read() == [b"two"]


def test_a_compacted_file_stands_for_those_before_it_and_is_reported(rolling: Path) -> None:
    append(rolling / "events_1_app-1", b"old\n")
    append(rolling / "events_2_app-1", b"old too\n")
    append(rolling / "events_2_app-1.compact", b"kept\n")
    append(rolling / "events_3_app-1", b"new\n")
    log = Log(rolling)
    assert log.new() == [b"kept", b"new"]
    assert [item.code for item in log.follower.take_diagnostics()] == ["log_compacted"]
    append(rolling / "events_3_app-1", b"newer\n")
    assert log.new() == [b"newer"]


def test_compaction_behind_our_back_repeats_nothing(rolling: Path) -> None:
    append(rolling / "events_1_app-1", b"one\n")
    append(rolling / "events_2_app-1", b"two\n")
    follower = Follower(rolling)
    assert follower.read() == [b"one", b"two"]
    append(rolling / "events_2_app-1.compact", b"one or two\n")
    append(rolling / "events_3_app-1", b"three\n")
    (rolling / "events_1_app-1").unlink()
    (rolling / "events_2_app-1").unlink()
    anew, position = Follower(rolling, follower.position), follower.position
    assert follower.read() == anew.read() == [b"three"]
    assert position["file"] == 2
    assert [item.code for item in anew.take_diagnostics()] == ["log_file_missing"]


def test_a_deleted_file_is_a_reported_gap(rolling: Path) -> None:
    append(rolling / "events_1_app-1", b"one\n")
    follower = Follower(rolling)
    assert follower.read() == [b"one"]
    append(rolling / "events_4_app-1", b"four\n")
    assert follower.read() == [b"four"]
    assert [item.code for item in follower.take_diagnostics()] == ["log_file_missing"]


def test_what_cannot_be_read_says_why_in_one_line(tmp_path: Path, rolling: Path) -> None:
    (tmp_path / "app-1.lz4").touch()
    (tmp_path / "app-2.zstd").write_bytes(b"this is no zstd at all")
    (tmp_path / "some directory").mkdir()
    for name, reason in {
        "app-1.lz4": "lz4 compression is not supported; set spark.eventLog.compression.codec=zstd",
        "app-2.zstd": "damaged zstd data",
        "some directory": "not one of an event log",
        "missing": "no such file",
    }.items():
        with pytest.raises(UnreadableLogError, match=reason) as caught:
            Follower(tmp_path / name).read()
        assert "\n" not in str(caught.value)


def test_good_lines_before_damage_are_given_first(rolling: Path) -> None:
    append(rolling / "events_1_app-1.zstd", zstandard.ZstdCompressor().compress(b"one\n") + b"garbage!")
    follower = Follower(rolling)
    assert follower.read() == [b"one"]
    for _ in range(2):
        with pytest.raises(UnreadableLogError, match="damaged"):
            follower.read()


def test_logs_are_found_among_other_files(tmp_path: Path) -> None:
    shutil.copytree(ROLLING, tmp_path / ROLLING.name)
    shutil.copy(PLAIN, tmp_path / "app-1.inprogress")
    (tmp_path / "app-2.zstd").touch()
    (tmp_path / "notes.txt").write_text("not a log")
    (tmp_path / ".app-1.crc").touch()
    (tmp_path / "empty").mkdir()
    assert [log.name for log in find_logs(tmp_path)] == ["app-1", "app-2.zstd", ROLLING.name]
    with pytest.raises(UnreadableLogError):
        find_logs(tmp_path / "nowhere")


@pytest.mark.parametrize("restart", [False, True])
def test_a_collector_that_is_restarted_at_every_poll_gives_the_same_records_once(restart: bool) -> None:
    for path in (PLAIN, ROLLING):
        decoder = SparkEventLogDecoder()
        expected = decoder.feed(Follower(path).remaining())
        collector, state, batches = EventLogCollector(path), None, []
        while not (batches and collector.caught_up):
            batch, state = collector.poll(state, limit_bytes=1_000)
            batches.append(batch)
            if restart:
                collector.close()
                collector, state = EventLogCollector(path), json.loads(json.dumps(state))
                _, same = collector.poll(state, limit_bytes=0)
                assert same == state
                collector.caught_up = not Follower(path, state["position"]).read()
        found = merge_batches(batches)
        assert rows(found) == rows(expected)
        assert codes(found) == codes(expected)
        assert collector.application.finished
        batch, again = collector.poll(state)
        assert (len(batch.records), again) == (0, state)


def test_a_poll_whose_batch_was_not_stored_can_be_repeated() -> None:
    collector = EventLogCollector(PLAIN)
    _, first = collector.poll(None, limit_bytes=1_000)
    lost, _ = collector.poll(first, limit_bytes=50_000)
    again, _ = collector.poll(first, limit_bytes=50_000)
    assert rows(again) == rows(lost)
    assert len(lost.records) > 0
