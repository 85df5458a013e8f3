"""Addresses as people write them: tidied, or refused with the line that helps."""

import pytest

from webapp.telemetry.connections.addresses import (
    AddressError,
    database_address,
    http_address,
    path_on_disk,
)


@pytest.mark.parametrize(
    "written",
    [
        "postgresql://reader@db:5432/autoscaler", "jdbc:postgresql://reader@DB/autoscaler",
        " postgres://reader@db:5432/autoscaler ",
    ],
)  # fmt: skip
def test_two_ways_to_write_the_address_of_a_database_are_one(written: str) -> None:
    assert database_address(written) == "postgresql://reader@db:5432/autoscaler"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "write an address"),
        ("jdbc:mysql://reader@db/autoscaler", "other databases cannot be read"),
        ("postgresql://reader:secret@db/autoscaler", "PGPASSFILE"),
        ("postgresql://db/autoscaler", "name the user"),
        ("postgresql://reader@/autoscaler", "name the user"),
        ("postgresql://reader@%2Fvar%2Frun/autoscaler", "name the user"),
        ("postgresql://reader@db,169.254.169.254/autoscaler", "name the user"),
        ("postgresql://reader@db", "name the database"),
        ("postgresql://reader@db/a?host=other", "name the database"),
        ("postgresql://reader@169.254.169.254/a", "may be asked"),
        ("postgresql://reader@db:port/a", "check its host and port"),
    ],
)
def test_an_address_of_a_database_that_cannot_be_used_says_why(written: str, says: str) -> None:
    with pytest.raises(AddressError, match=says):
        database_address(written)


@pytest.mark.parametrize(
    ("written", "tidied"),
    [
        ("http://jobmanager:8081", "http://jobmanager:8081"),
        ("  HTTP://JobManager:8081/ ", "http://jobmanager:8081"),
        ("https://flink.example:443/", "https://flink.example"),
        ("http://10.0.0.7:80/proxy/flink/", "http://10.0.0.7/proxy/flink"),
        ("http://[FD00::1]:8081", "http://[fd00::1]:8081"),
        ("http://127.0.0.1:9249/Metrics", "http://127.0.0.1:9249/Metrics"),
    ],
)
def test_two_ways_to_write_an_address_are_one(written: str, tidied: str) -> None:
    assert http_address(written) == tidied
    assert http_address(tidied) == tidied


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("", "write an address"),
        ("jobmanager:8081", "begin the address with http://"),
        ("ftp://host", "only http:// and https://"),
        ("file:///etc/passwd", "only http:// and https://"),
        ("gopher://host", "only http:// and https://"),
        ("http://", "names no host"),
        ("http://:8081", "names no host"),
        ("http://ann:secret@host:8081", "leave out the name and password"),
        ("http://host:8081/#/overview", "leave out what follows"),
        ("http://host:8081/?token=x", "leave out what follows"),
        ("http://host:99999", "check its host and port"),
        ("http://host:port", "check its host and port"),
        ("http://[::1", "check its host and port"),
        ("http://a b", "leave out the spaces"),
        ("http://a\0b", "leave out the spaces"),
        ("http://host/" + "x" * 900, "longer than 900 characters"),
        ("http://169.254.169.254/latest", "may be asked"),
        ("http://[::ffff:169.254.169.254]/", "may be asked"),
        ("http://0.0.0.0:8081", "may be asked"),
    ],
)
def test_each_mistake_in_an_address_has_its_line(written: str, says: str) -> None:
    with pytest.raises(AddressError, match=says) as refused:
        http_address(written)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "tidied"),
    [("/var/log/spark/", "/var/log/spark"), ("//var//log/./spark", "/var/log/spark"), (" /logs ", "/logs")],
)
def test_two_ways_to_write_a_path_are_one(written: str, tidied: str) -> None:
    assert path_on_disk(written) == tidied


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (" ", "write a directory"),
        ("logs", "begin the path with /"),
        ("/var/../etc", r"leave out the \.\."),
        ("hdfs://logs", "on the disk of the workers"),
        ("/a\0b", "leave out the spaces"),
    ],
)
def test_each_mistake_in_a_path_has_its_line(written: str, says: str) -> None:
    with pytest.raises(AddressError, match=says):
        path_on_disk(written)
