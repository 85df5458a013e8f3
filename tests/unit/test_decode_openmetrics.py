"""Scraped endpoints: Prometheus text, as Flink exposes it, and OpenMetrics."""

import gzip

import pytest

from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.openmetrics import SCRAPE_LIMITS, decode_exposition
from analytics.model.metrics import MetricSample
from analytics.model.samples import Kind, MetricBatch
from tests.support.flink import GOLDEN

NOW = 1_795_251_855_053_000_000
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4"


def scrape(body: str | bytes, content_type: str = TEXT, limits: Limits = SCRAPE_LIMITS) -> MetricBatch:
    data = body.encode() if isinstance(body, str) else body
    return decode_exposition(data, content_type, NOW, "tm:9249", limits)


def names(batch: MetricBatch) -> list[str]:
    return [item.name for item in batch.samples()]


def codes(batch: MetricBatch) -> dict[str, int]:
    return {item.code: item.count for item in batch.diagnostics}


@pytest.mark.parametrize(
    ("file", "count", "name", "wanted"),
    [
        ("prometheus_jobmanager.txt", 62, "flink_jobmanager_job_lastCheckpointDuration", 41_119.0),
        ("prometheus_taskmanager.txt.gz", 335, "flink_taskmanager_job_task_accumulateBusyTimeMs", None),
    ],
)
def test_what_flink_exposes_is_read(file: str, count: int, name: str, wanted: float | None) -> None:
    data = (GOLDEN / file).read_bytes()
    text = gzip.decompress(data) if file.endswith(".gz") else data
    batch = scrape(text)
    values = [line for line in text.decode().split("\n") if line and not line.startswith("#")]
    left_out = sum(line.endswith("NaN") for line in values)
    assert len(values) == count
    assert len(batch) == len(values) - left_out
    assert (codes(batch).get("not_finite", 0), batch.rejected_count) == (left_out, 0)
    found = [item for item in batch.samples() if item.name == name]
    assert found
    assert wanted in (None, found[0].value)
    assert {item.at_ns for item in found} == {NOW}
    assert dict(found[0].labels)["instance"] == "tm:9249"
    assert dict(found[0].labels)["job_name"] == "defaults_aligned_32k"


def test_names_are_those_exposed_and_kinds_those_declared() -> None:
    batch = scrape(
        '# TYPE a counter\na 1\na{x="y"} 2\n# TYPE b_total counter\nb_total 3\n# TYPE g gauge\ng 4\nu 5\n'
        '# TYPE s summary\ns{quantile="0.5"} 6\ns_sum 7\n# TYPE h histogram\nh_bucket{le="+Inf"} 8\nh_count 8\n'
    )
    assert names(batch) == ["a", "a", "b_total", "g", "u", "s", "s_sum", "h_bucket", "h_count"]
    assert [series.kind for series in batch.series] == [
        Kind.COUNTER, Kind.COUNTER, Kind.COUNTER, Kind.GAUGE, Kind.UNKNOWN, Kind.GAUGE, Kind.COUNTER,
        Kind.COUNTER, Kind.COUNTER,
    ]  # fmt: skip


def test_a_sample_keeps_its_own_time_and_instance() -> None:
    batch = scrape('a{instance="other"} 1 1795251855001\nb 2 -5\n')
    assert batch.samples() == [MetricSample("a", (("instance", "other"),), 1_795_251_855_001_000_000, 1.0)]
    assert (codes(batch), batch.rejected_count) == ({"time_out_of_range": 1}, 1)


def test_openmetrics_is_read_with_its_own_rules() -> None:
    batch = scrape(
        "# TYPE records counter\nrecords_total 5 1795251855.25\nrecords_created 1795251000 1795251855.25\n"
        '# TYPE state stateset\nstate{state="RUNNING"} 1\n# EOF\n',
        OPEN,
    )
    assert [(item.name, item.value) for item in batch.samples()] == [
        ("records_total", 5.0), ("records_created", 1795251000.0), ("state", 1.0),
    ]  # fmt: skip
    assert batch.at_ns[0] == 1_795_251_855_250_000_000
    assert [series.kind for series in batch.series] == [Kind.COUNTER, Kind.GAUGE, Kind.GAUGE]
    with pytest.raises(UnreadableFileError, match="EOF"):
        scrape("# TYPE a gauge\na 1\n", OPEN)


def test_a_native_histogram_is_its_count_and_sum() -> None:
    buckets = "schema:0,zero_threshold:0.001,zero_count:4,positive_spans:[0:2],positive_deltas:[2,1]"
    body = f"{{count:24,sum:100.5,{buckets}}}"
    batch = scrape(f"# TYPE nativehistogram histogram\nnativehistogram {body}\n# EOF\n", OPEN)
    assert [(item.name, item.value) for item in batch.samples()] == [
        ("nativehistogram_count", 24.0), ("nativehistogram_sum", 100.5),
    ]  # fmt: skip
    assert codes(batch) == {"native_histogram": 1}


def test_values_that_are_not_finite_say_nothing() -> None:
    assert codes(scrape("a NaN\nb +Inf\nc 1\n")) == {"not_finite": 2}
    huge = "1" + "0" * 400
    told = f"{{count:{huge},sum:1,schema:0,zero_threshold:0.001,zero_count:4}}"
    assert codes(scrape(f"# TYPE h histogram\nh {told}\n# EOF\n", OPEN))["not_finite"] == 1
    with pytest.raises(UnreadableFileError, match="line 2: int too large"):
        scrape(f"# TYPE s summary\ns_count {huge}\n# EOF\n", OPEN)


def test_times_that_are_not_finite_reject_their_sample() -> None:
    batch = scrape("a 1 NaN\nb 1 Inf\nc 1 1e30\nd 1\n")
    assert (names(batch), codes(batch), batch.rejected_count) == (["d"], {"time_out_of_range": 3}, 3)


def test_a_bad_line_is_named_by_its_number() -> None:
    for bad in ("a{x=y} 1", "a one", "1a 1", "a{", "# TYPE a"):
        with pytest.raises(UnreadableFileError, match=r"^line 3: \S"):
            scrape(f"ok 1\n\n{bad}\n")


def test_labels_that_cannot_be_stored_reject_their_sample() -> None:
    batch = scrape(f'a{{x="{"v" * 1_001}"}} 1\nb 1\n')
    assert (names(batch), codes(batch), batch.rejected_count) == (["b"], {"bad_label": 1}, 1)


def test_a_line_separator_inside_a_label_is_no_end_of_line() -> None:
    assert dict(scrape('a{x="1\u2028\x0b2"} 1\n').samples()[0].labels)["x"] == "1\u2028\x0b2"


def test_limits_hold_for_bytes_samples_and_lines() -> None:
    with pytest.raises(TooLargeError, match="10 bytes"):
        scrape("a 1\n" * 3, limits=Limits(10, 10))
    with pytest.raises(TooLargeError, match="2 records"):
        scrape("a 1\n" * 3, limits=Limits(100, 2))
    labels = ",".join(f'l{at}="v"' for at in range(10_000))
    with pytest.raises(UnreadableFileError, match="line 1: it is longer than"):
        scrape(f"a{{{labels}}} 1\n")
    with pytest.raises(UnreadableFileError, match="no UTF-8"):
        scrape(b"a \xff\n")


def test_an_empty_answer_has_no_samples() -> None:
    assert len(scrape("")) == len(scrape("# EOF\n", OPEN)) == 0
