"""Files that are there whole or not at all, and files that one process holds."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder last through a power cut, where the system can."""
    with contextlib.suppress(OSError):  # folders cannot be opened on some systems
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file under a temporary name beside it, flush it to the disk, and rename it.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old file, if any, is untouched.
    """
    with open_atomic(path) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """The same for what is too long for memory: a file to write to, renamed at the end of the block.

    Raises:
        OSError: as `write_atomic`. Whatever else the block raises also leaves the old file untouched.
    """
    temporary = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}"
    # Opened by hand: a temporary file of the library's would be readable by its owner alone, and so the result.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def hold(path: Path) -> BinaryIO:
    """Hold a file, made if it is not there, for this process until what is returned is closed, where the system can.

    Raises:
        BlockingIOError: another process holds it.
        OSError: it cannot be opened.
    """
    file = path.open("ab")
    if os.name == "posix":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        except OSError:  # a file system without locks
            pass
    return file
