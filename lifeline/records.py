"""Files of game records: JSON lines, one game a line, read and written as streams; compressed where they end in .gz.

Memory does not grow with the number of games. docs/records.md has the schema.
"""

from __future__ import annotations

import gzip
import logging
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO, cast

from lifeline.errors import RecordError
from lifeline.files import open_atomic, sync_folder
from lifeline.game_record import GameRecord, PlayerInfo, Result
from lifeline.record_json import MAX_LINE, format_record, parse_record

__all__ = ["GameRecord", "PlayerInfo", "Result", "append_records", "read_records", "survey", "write_records"]

log = logging.getLogger(__name__)

Source = Path | str | IO[bytes] | IO[str]


def read_records(
    source: Source, *, on_error: Callable[[RecordError], None] | None = None, replay: bool = True
) -> Iterator[GameRecord]:
    """The games of a file, one after the other.

    Args:
        source: a path, or a file open for reading, bytes or text, which stays open.
        on_error: called with what is wrong with a line, which is then passed over; where a file cannot be read any
            further, the last call says so. None: errors are raised.
        replay: False where the file is trusted: moves are not played, which takes most of the time (see `GameRecord`).

    Raises:
        RecordError: a damaged line or file; the message names file, line, column and reason.
    """
    with ExitStack() as stack:
        name, number = str(getattr(source, "name", "records")), 0
        try:
            if isinstance(source, Path | str):
                name = str(source)
                source = stack.enter_context(_open(Path(source)))
            while line := source.readline(MAX_LINE + 1):
                number += 1
                ended = line[-1:] in ("\n", b"\n")
                try:
                    if len(line) > MAX_LINE:
                        while not ended and (rest := source.readline(MAX_LINE)):
                            ended = rest[-1:] in ("\n", b"\n")
                        raise RecordError(f"longer than {MAX_LINE} characters", name, number, MAX_LINE)
                    record = parse_record(_decoded(line, name, number), name, number, replay=replay)
                except RecordError as error:
                    told = error if ended else _cut_off(error)
                    if on_error is None:
                        raise told from None
                    on_error(told)
                else:
                    yield record
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            told = _unreadable(error, name, number + 1)
            if on_error is None:
                raise told from None
            on_error(told)


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _compressed(file: BinaryIO) -> BinaryIO:
    # Without name and time: equal games make equal files.
    return cast(BinaryIO, gzip.GzipFile("", "wb", fileobj=file, mtime=0))


def _decoded(line: str | bytes, name: str, number: int) -> str:
    if isinstance(line, str):
        return line
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        raise RecordError("not a text in UTF-8", name, number, column) from None


def _cut_off(error: RecordError) -> RecordError:
    """The error of a last line without an end: whoever wrote it was stopped in the middle."""
    return RecordError(f"the last line is cut off: {error.reason}", error.file, error.line, error.column)


def _unreadable(error: Exception, name: str, number: int) -> RecordError:
    if isinstance(error, EOFError):
        return RecordError("the compressed file is cut off", name, number, 1)
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return RecordError(f"the compressed file is damaged: {error}", name, number, 1)
    if isinstance(error, UnicodeDecodeError):
        return RecordError("not a text in UTF-8", name, number, 1)
    return RecordError(f"cannot be read: {getattr(error, 'strerror', None) or error}", name)


def write_records(path: Path, records: Iterable[GameRecord]) -> int:
    """Write a file of games, there whole or not at all, in place of one that is there; returns how many.

    Raises:
        RecordError: the file cannot be written, or a record is too long for a line.
    """
    count = 0
    try:
        with open_atomic(path) as file, ExitStack() as stack:
            out = stack.enter_context(_compressed(file)) if path.suffix == ".gz" else file
            for record in records:
                out.write(_line(record))
                count += 1
    except OSError as error:
        raise RecordError(f"cannot be written: {error.strerror or error}", str(path)) from None
    return count


def append_records(path: Path, records: Iterable[GameRecord]) -> int:
    """Add games to the end of a file, made if it is not there; returns how many. One writer at a time.

    Whole lines are added, each by one write, and are on the disk on return. What a writer that was killed left of its
    last line is removed, with a warning. A file ending in .gz is read through first, and gets another gzip member.

    Raises:
        RecordError: the file cannot be written, or a record is too long for a line; or it is compressed and damaged.
    """
    count = 0
    try:
        new = not path.exists()
        if path.suffix == ".gz" and not new:
            _check_compressed(path)
        with path.open("ab+") as file, ExitStack() as stack:
            if path.suffix != ".gz":
                _mend(file, path)
            out = stack.enter_context(_compressed(file)) if path.suffix == ".gz" else file
            for record in records:
                out.write(_line(record))
                count += 1
                file.flush()
            stack.close()
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync_folder(path.parent)
    except OSError as error:
        raise RecordError(f"cannot be written: {error.strerror or error}", str(path)) from None
    return count


def _line(record: GameRecord) -> bytes:
    return format_record(record).encode() + b"\n"


def _mend(file: BinaryIO, path: Path) -> None:
    """Give the last line its end, or remove it where it is no record."""
    size = file.seek(0, os.SEEK_END)
    at = file.seek(max(0, size - MAX_LINE))
    tail = file.read(size - at)
    if not tail or tail.endswith(b"\n"):
        return
    last = tail[tail.rfind(b"\n") + 1 :]
    try:
        parse_record(_decoded(last, str(path), 1), replay=False)
    except RecordError:
        if b"\n" not in tail and at > 0:
            raise RecordError(f"the last line is longer than {MAX_LINE} characters", str(path)) from None
        log.warning("%s: the last line was cut off and is removed: %r", path, last[:60])
        file.truncate(size - len(last))
    else:
        file.write(b"\n")


def _check_compressed(path: Path) -> None:
    """Refuse to add to a compressed file that is cut off: nothing behind the cut could be read."""
    try:
        with gzip.open(path, "rb") as file:
            while file.read(1 << 16):
                pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        told = "cut off" if isinstance(error, EOFError) else f"damaged: {error}"
        raise RecordError(f"the compressed file is {told}; nothing can be added to it", str(path)) from None


def survey(source: Source, name: str, tell: Callable[[str], None], *, replay: bool = True) -> tuple[str, int]:
    """Read a file through, and say in one line what is in it.

    Args:
        source: see `read_records`.
        name: of the file, for the line.
        tell: called with each error's message.

    Returns:
        The line, and the number of errors.
    """
    games = plies = ended = first = errors = 0

    def on_error(error: RecordError) -> None:
        nonlocal errors
        errors += 1
        tell(str(error))

    for record in read_records(source, on_error=on_error, replay=replay):
        games += 1
        plies += len(record.moves)
        if record.result is not None:
            ended += 1
            first += record.result.winner == 0
    share = f" ({100 * first / ended:.1f} %)" if ended else ""
    won = f"first seat won {first} of {ended}{share}, {games - ended} unfinished"
    return f"{name}: {games} games, {plies} plies, {won}, {errors} errors", errors
