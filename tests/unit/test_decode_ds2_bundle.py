"""DS2's topology and rates in one file or one archive."""

import io
import zipfile
from pathlib import Path

import pytest

from analytics.decode.formats import UPLOADED, read_file
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.model.trace import TraceBatch

TOPOLOGY = b"# from, to\n1,lines,1,2,split,2\n2,split,2,3,count,1\n"
SECOND = 10**9
T0 = 1_795_251_855 * SECOND


def rates(epoch: int, operator: int, instance: int, total: int) -> bytes:
    return b"%d,%d,%d,%d,1000,500,250,125\n" % (operator, instance, total, T0 + epoch * 10 * SECOND)


RATES = b"".join(
    rates(epoch, *who) for epoch in range(3) for who in ((1, 0, 1), (2, 0, 2), (2, 1, 2), (3, 0, 1))
)


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return out.getvalue()


def read(folder: Path, data: bytes, limits: Limits | None = None) -> TraceBatch:
    path = folder / "log"
    path.write_bytes(data)
    return read_file(path, "ds2", limits)


ONLINE = {"topology.csv": TOPOLOGY} | {
    f"run/rates-{instance}-{epoch}.log": rates(epoch, *who)
    for epoch in range(3)
    for instance, who in enumerate(((1, 0, 1), (2, 0, 2), (2, 1, 2), (3, 0, 1)))
}


@pytest.mark.parametrize(
    "data",
    [
        TOPOLOGY + RATES,
        RATES + b"\n# and the graph\n" + TOPOLOGY.replace(b"\n", b"\r\n"),
        archive({"topology.csv": TOPOLOGY, "rates.csv": RATES, "__MACOSX/._rates.csv": b"\0"}),
        archive(ONLINE),
    ],
    ids=["after one another", "the other way round", "archive", "a file an instance and epoch"],
)
def test_each_epoch_has_the_rates_of_its_instances_and_the_graph(tmp_path: Path, data: bytes) -> None:
    batch = read(tmp_path, data)
    assert batch.operators == ("lines", "split", "count")
    assert [(window.start_ns - T0, window.end_ns - T0) for _, window in batch.rates] == [
        (-10 * SECOND, 0),
        (0, 10 * SECOND),
        (10 * SECOND, 20 * SECOND),
    ]
    for topology, window in batch.rates:
        assert [(edge.source, edge.target) for edge in topology.edges] == [("1", "2"), ("2", "3")]
        found = {item.operator_id: (item.expected, len(item.instances)) for item in window.operators}
        assert found == {"1": (1, 1), "2": (2, 2), "3": (1, 1)}
        assert window.operators[0].instances[0].true_processing_per_s == 1000
    assert len(batch.records) == 0
    assert batch.diagnostics == ()


def test_rows_that_are_neither_are_counted_and_rates_of_sources_belong_to_the_job(tmp_path: Path) -> None:
    batch = read(tmp_path, TOPOLOGY + b"1,900\nwhat,is,this\n2,x,many,1,1,1,1,1\n" + RATES)
    assert {item.code: item.count for item in batch.diagnostics} == {
        "bad_rate_row": 1, "source_rates_left_out": 1, "unknown_row": 1,
    }  # fmt: skip
    assert len(batch.rates) == 3


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (TOPOLOGY, "no rates"),
        (RATES, "no topology"),
        (b"", "no topology"),
        (b"\xff\xfe", "no topology"),
        (archive({"topology.csv": TOPOLOGY + RATES})[:-30], "ZIP"),
        (TOPOLOGY + b"1,lines,7,2,split,2\n" + RATES, "otherwise"),
    ],
)
def test_half_of_it_or_something_else_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(UnreadableFileError, match=says) as told:
        read(tmp_path, data)
    assert "\n" not in str(told.value)


def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    bomb = archive({"topology.csv": TOPOLOGY, "rates.csv": b"#" * 50_000_000})
    assert len(bomb) < 100_000
    with pytest.raises(TooLargeError):
        read(tmp_path, bomb, Limits(1_000_000, 1_000))
    with pytest.raises(TooLargeError):
        read(tmp_path, archive(ONLINE), Limits(1_000_000, 5))


@pytest.mark.parametrize("whole", [TOPOLOGY + RATES, archive({"a.csv": TOPOLOGY, "b.csv": RATES})])
def test_cut_or_damaged_at_any_byte_it_is_read_or_refused(tmp_path: Path, whole: bytes) -> None:
    for at in range(len(whole)):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            try:
                batch = read(tmp_path, data, Limits(100_000, 1_000))
            except UnreadableFileError:
                continue
            assert batch.rates


def test_it_is_offered_for_upload_by_a_name_that_people_know() -> None:
    assert "DS2" in UPLOADED["ds2"].label
