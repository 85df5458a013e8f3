"""Receiving a file: its bytes go to disk as they come, never into memory; what breaks off leaves nothing."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import QueryDict
from django.http.multipartparser import MultiPartParser
from django.utils.datastructures import MultiValueDict

from analytics.decode.guess import HEAD_BYTES
from webapp.telemetry.uploads.problems import (
    BusyError,
    DiskFullError,
    IncompleteUploadError,
    TooLargeUploadError,
    UploadError,
)

KEEP_FREE_BYTES = 1 << 30
"""As much of the disk stays free: the database may lie on it."""

MOST_AT_ONCE = 4
"""Files being received by one web process, so that slow uploads leave threads for pages."""

FORM_BYTES = 1 << 16
"""What the form around the file may add to the body."""

_CHUNK_BYTES = 1 << 20
_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}$")
_slots = threading.BoundedSemaphore(MOST_AT_ONCE)


def folder() -> Path:
    """Where uploads lie."""
    path = Path(settings.WEIR_HOME) / "uploads"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def path_of(upload_id: int, name: str) -> Path:
    """Where the file of an upload lies. Its last suffix is kept, since it tells how an event log is compressed."""
    suffix = _SUFFIX.search(name.lower().removesuffix(".inprogress").removesuffix(".compact"))
    return folder() / f"{upload_id}{suffix[0] if suffix else ''}"


class Received(UploadedFile):  # type: ignore[type-arg]  # no generic at run time
    """A file that came whole. It is thrown away with the request unless somebody takes it (:meth:`move`)."""

    def __init__(self, path: Path, name: str, size: int, digest: bytes, head: bytes) -> None:
        super().__init__(name=name, size=size)
        self.path, self.digest, self.head = path, digest, head

    def close(self) -> None:
        """It is closed: Django closes the files of every request at its end."""

    def move(self, target: Path) -> None:
        """Give it a place of its own."""
        self.path.replace(target)


class _Source(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _Counted:
    """A body that knows how much of it has been read."""

    def __init__(self, body: _Source) -> None:
        self._body = body
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._body.read(size)
        self.count += len(data)
        return data


class Receiver(FileUploadHandler):
    """Django's upload handler for one file: to disk, with its digest, within the limit, whole or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self.file: BinaryIO | None = None
        self._has_slot = False

    def handle_raw_input(
        self, input_data: Any, META: Mapping[str, Any], content_length: int, boundary: Any,  # noqa: N803
        encoding: str | None = None,
    ) -> tuple[QueryDict, MultiValueDict[str, UploadedFile[Any]]]:  # fmt: skip
        """Parse the body, counting its bytes: Django takes a file that breaks off for a whole one.

        Raises
        ------
        UploadError
            If it is too large, does not fit on the disk, does not come whole, or too many come at once.
        """
        check_size(content_length - FORM_BYTES)
        if not _slots.acquire(blocking=False):
            raise BusyError(f"{MOST_AT_ONCE} files are being uploaded already. Try again in a moment.")
        self._has_slot = True
        body = _Counted(input_data)
        found = MultiPartParser(dict(META), body, [_ToDisk(self)], encoding).parse()  # type: ignore[arg-type]
        if body.count < content_length:
            raise IncompleteUploadError(f"only {body.count:,} of {content_length:,} bytes arrived")
        return found

    def begin(self) -> tuple[BinaryIO, Path]:
        """Open the one file that may come."""
        if self._path is not None:
            raise UploadError("one file at a time")
        with tempfile.NamedTemporaryFile(dir=folder(), prefix="receiving-", delete=False) as made:
            self._path = Path(made.name)
        self.file = self._path.open("wb")
        return self.file, self._path

    def end(self) -> None:
        """Leave nothing behind but what was moved away. Call it whatever happened."""
        if self.file is not None:
            self.file.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        if self._has_slot:
            self._has_slot = False
            _slots.release()


class _ToDisk(FileUploadHandler):
    chunk_size = _CHUNK_BYTES

    def __init__(self, receiver: Receiver) -> None:
        super().__init__()
        self._receiver = receiver

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.file, self._path = self._receiver.begin()
        self._digest = hashlib.sha256()
        self._head = b""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        check_size(start + len(raw_data), on_disk=start)
        if len(self._head) < HEAD_BYTES:
            self._head += raw_data[: HEAD_BYTES - len(self._head)]
        self._digest.update(raw_data)
        with _about_disk():
            self.file.write(raw_data)

    def file_complete(self, file_size: int) -> Received:
        with _about_disk():
            self.file.close()
        name = (self.file_name or "trace")[:255].replace("\0", "")
        return Received(self._path, name, file_size, self._digest.digest(), self._head)


def check_size(size_bytes: int, on_disk: int = 0) -> None:
    """Refuse what is larger than the limit, or than the room there is (``on_disk`` of it are there already).

    Raises
    ------
    UploadError
        Says the limit.
    """
    if size_bytes > settings.WEIR_UPLOAD_MAX_BYTES:
        raise TooLargeUploadError(
            f"the file is larger than {settings.WEIR_UPLOAD_MAX_BYTES:,} bytes, the limit of uploads here "
            "(WEIR_UPLOAD_MAX_BYTES). Gzip it, or cut the trace."
        )
    if shutil.disk_usage(folder()).free - (size_bytes - on_disk) < KEEP_FREE_BYTES:
        raise DiskFullError("there is not enough room on Weir's disk for this file")


@contextmanager
def _about_disk() -> Iterator[None]:
    """Turn the operating system's "no room" into ours."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DiskFullError("Weir's disk is full: the file was not kept") from error
        raise
