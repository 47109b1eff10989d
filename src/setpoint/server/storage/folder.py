"""The data directory: whose it is, who may read it, and who has it open.

Promises:

1. The directory is 0700 and what is made in it 0600, whatever the umask says.  One that belongs to someone
   else is refused, and so is a link in the place of the directory or of a file in it.
2. One process has it at a time; another is refused, and told who has it.  The lock goes with the process,
   however that ends.
3. A directory that was made, and a file that was put in its place, are there after a power loss.

No SQL here: ``log.py`` knows what is in the files.  POSIX only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from setpoint.errors import SetpointError

_LOCK: Final = "lock"
_DATABASE: Final = "store.db"
_FRESH: Final = "store.db.new"  # whole, and to be put in its place
_PART: Final = "store.db.part"  # being written


class CannotOpen(SetpointError):
    """A data directory that cannot be used, with what to do about it."""

    def __init__(self, message: str) -> None:
        super().__init__("", message)


class Folder:
    """A data directory that this process has to itself."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock

    def __repr__(self) -> str:
        return f"<Folder {self.path}>"

    @classmethod
    def take(cls, path: str | Path) -> Folder:
        """Make it where it is missing, and lock it."""
        where = Path(path)
        _make(where)
        folder = cls(where, _locked(where))
        try:
            folder._finish()
            for name in (_DATABASE, f"{_DATABASE}-wal"):
                _check_file(where / name)
        except BaseException:
            folder.release()
            raise
        return folder

    @property
    def database(self) -> Path:
        return self.path / _DATABASE

    @property
    def part(self) -> Path:
        """Where a new database is written; ``accept_part`` says that it is whole."""
        return self.path / _PART

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def set_aside(self) -> None:
        """Move a damaged database out of the way, with its log, which must never meet another database."""
        aside = next(
            name
            for number in range(1, 1_000_000)
            if not (name := self.path / f"{_DATABASE}.damaged-{number}").exists()
        )
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{self.database}{suffix}").rename(f"{aside}{suffix}")
        sync_directory(self.path)

    def accept_part(self) -> None:
        """The new database is whole."""
        sync_file(self.part)
        self.part.rename(self.path / _FRESH)
        sync_directory(self.path)

    def place_fresh(self) -> None:
        """Put the new database where the old one was."""
        (self.path / _FRESH).rename(self.database)
        sync_directory(self.path)

    def _finish(self) -> None:
        """A database that was written whole and not put in its place before a crash is put there now."""
        self.part.unlink(missing_ok=True)
        if (self.path / _FRESH).exists():
            self.set_aside()
            self.place_fresh()


def create_file(path: Path) -> None:
    """An empty file that only its owner may read, and not through a link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Let the names in it be durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make(path: Path) -> None:
    doing = f"open the data directory {path}"
    try:
        if not path.is_symlink() and not path.exists():
            path.mkdir(mode=0o700, parents=True)
            sync_directory(path.parent)
        found = path.lstat()
    except OSError as error:
        raise CannotOpen(f"{doing}: {error.strerror}") from error
    if stat.S_ISLNK(found.st_mode):
        raise CannotOpen(f"{doing}: it is a link (give the directory that it leads to)")
    if not stat.S_ISDIR(found.st_mode):
        raise CannotOpen(f"{doing}: it is not a directory")
    if found.st_uid != os.geteuid():
        raise CannotOpen(f"{doing}: it belongs to another user (choose a directory of your own)")
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)


def _locked(path: Path) -> int:
    doing = f"open the data directory {path}"
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotOpen(f"{doing}: its lock file: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(lock, 20, 0).decode(errors="replace").strip()
        os.close(lock)
        raise CannotOpen(
            f"{doing}: another server has it open{f', process {owner}' if owner else ''}"
            " (stop that one, or choose another directory)"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _check_file(path: Path) -> None:
    """A file of ours is a plain file that is ours."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise CannotOpen(f"open {path}: it is not a plain file (who put a link there?)")
    if found.st_uid != os.geteuid():
        raise CannotOpen(f"open {path}: it belongs to another user")
    if stat.S_IMODE(found.st_mode) != 0o600:
        path.chmod(0o600)
