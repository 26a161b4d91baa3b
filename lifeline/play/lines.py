"""Lines of an input, read ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

# Bytes of a line, where nothing else is said.
MAX_LINE = 4096
# Lines read ahead; who sends more without reading an answer is made to wait.
_MAX_WAITING = 1000


class LineReader:
    """Lines read in a thread of its own, so that there is a way to know of the next one before it is wanted.

    Args:
        read: gives the next bytes, so many at most, and none at the end; an OSError is an end too.
        longest: bytes of a line that are kept, and one more, which tells that there were more.
    """

    def __init__(self, read: Callable[[int], bytes], longest: int = MAX_LINE) -> None:
        self._read, self._longest = read, longest
        self._lines = deque[str | None]()
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="input", daemon=True).start()

    def next(self) -> str | None:
        """The next line, without its newline and cut behind `longest` + 1 bytes; waits for it. None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines)
            line = self._lines[0]
            if line is not None:  # the end stays
                self._lines.popleft()
            self._changed.notify_all()
            return line

    def arrived(self, seconds: float) -> bool:
        """Whether `next` has a line, or the end, to give; waits for it so many seconds at most."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._lines), seconds)

    def _run(self) -> None:
        kept = b""
        while data := self._block():
            first, *others = data.split(b"\n")
            pieces = [kept + first, *others]
            for piece in pieces[:-1]:
                self._put(piece)
            kept = pieces[-1][: self._longest + 1]
        if kept:
            self._put(kept)
        self._put(None)

    def _block(self) -> bytes:
        try:
            return self._read(65536)
        except OSError:
            return b""

    def _put(self, line: bytes | None) -> None:
        # One character a byte, whatever it is.
        text = None if line is None else line[: self._longest + 1].decode("latin-1")
        with self._changed:
            self._changed.wait_for(lambda: len(self._lines) < _MAX_WAITING)
            self._lines.append(text)
            self._changed.notify_all()
