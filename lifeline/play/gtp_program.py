"""A program that speaks the Go Text Protocol, run as a subprocess and asked one command at a time.

Whatever the program does, an ask ends: with its answer, or with an error by a deadline. It may hang, crash, write
without end to either pipe or answer nonsense; it then is killed, with all it has started.

Source: Farnebäck, Specification of the Go Text Protocol, version 2 (draft 2).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from lifeline.errors import ForfeitError

MAX_ANSWER = 1_000_000
"""Bytes of an answer; a program that writes more unasked is killed too."""

# Long enough for any complaint that helps, short enough for one line.
_SHOWN = 200
_MAX_COMPLAINT = 4_096
# How long a program that has closed its output is waited for, so that its exit code can be told.
_EXIT_SECONDS = 1.0
# A program may be gone while its children hold its pipes open: so often it is looked at.
_LOOK_SECONDS = 0.25

_ANSWER = re.compile(r"([=?])([0-9]{0,9})(?:\s+(.*))?", re.DOTALL | re.ASCII)


@dataclass(frozen=True)
class Answer:
    """What a program answered.

    Attributes:
        ok: whether it did what it was told (`=`), or could not (`?`).
        text: the rest, printable, lines joined by line feeds.
    """

    ok: bool
    text: str


def short(text: str) -> str:
    """A text of a stranger on one line of at most 200 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


class GtpProgram:
    """A running program. It is in a session of its own, so that Ctrl-C reaches this process alone.

    Args:
        command: program and arguments; no shell is involved.
        title: what it is called in errors.

    Raises:
        ForfeitError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], title: str) -> None:
        self._title = title
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise ForfeitError("adjudicated", f"{title} cannot be started: {reason}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input = self._process.stdin
        self._number = 0
        self._killed = False
        # Shared with the reading threads.
        self._arrived = threading.Condition()
        self._answers: deque[str] = deque()
        self._unread = 0
        self._closed = False
        self._complaints: deque[bytes] = deque(maxlen=20)
        self._threads = [
            threading.Thread(target=self._read_answers, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_complaints, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """The number of its process, which is that of its process group too."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked: False once an ask has failed or it was closed."""
        return not self._killed

    def ask(self, command: str, deadline: float) -> Answer:
        """Send a command and wait for its answer.

        Args:
            command: one line without its number.
            deadline: on the clock of `time.monotonic`.

        Raises:
            ForfeitError: no answer in time ("time"), or none at all, or one that is not of the protocol
                ("adjudicated"); the program has been killed.
        """
        try:
            return self._ask(command, deadline)
        except BaseException:  # an interrupted ask too: its answer would be taken for that to the next command
            self.kill()
            raise

    def _ask(self, command: str, deadline: float) -> Answer:
        began = time.monotonic()
        self._number += 1
        try:
            # One short line at a time: this cannot block before the program has left thousands of bytes unread.
            self._input.write(f"{self._number} {command}\n".encode())
            self._input.flush()
        except OSError:
            raise self._ended(command) from None
        text = self._await(deadline)
        if text is None:
            if self._unread > MAX_ANSWER:
                raise ForfeitError("adjudicated", f"{self._title} wrote more than {MAX_ANSWER} bytes to {command!r}")
            if self._closed:
                raise self._ended(command)
            raise ForfeitError("time", f"{self._title} did not answer {command!r} within {deadline - began:.1f} s")
        answer = _ANSWER.fullmatch(text)
        if answer is None or answer[2] != str(self._number):
            due = f"an answer ={self._number} or ?{self._number} to {command!r} was due"
            raise ForfeitError("adjudicated", f"{self._title} wrote {short(text)!r} where {due}")
        return Answer(answer[1] == "=", (answer[3] or "").strip())

    def _await(self, deadline: float) -> str | None:
        """The next answer; None if there is none by the deadline, or can be none any more."""
        with self._arrived:
            while not self._answers:
                left = deadline - time.monotonic()
                if self._closed or self._unread > MAX_ANSWER or left <= 0:
                    return None
                gone = self._process.poll() is not None
                if not self._arrived.wait(min(left, _LOOK_SECONDS)) and gone:
                    self._closed = True
            self._unread = 0
            return self._answers.popleft()

    def _ended(self, command: str) -> ForfeitError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        code = self._process.returncode
        self.kill()
        if code is None:
            how = "closed its pipes"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        said = [text for line in list(self._complaints) if (text := _printable(line))]
        last = f": {short(said[-1])}" if said else ""
        return ForfeitError("adjudicated", f"{self._title} {how} at {command!r}{last}")

    def close(self, seconds: float = 1.0) -> None:
        """Tell it to quit, wait for that, and end it otherwise. May be called again."""
        if self._killed:
            return
        with contextlib.suppress(OSError):
            self._input.write(f"{self._number + 1} quit\n".encode())
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """End it at once, and all processes of its group. May be called again."""
        if self._killed:
            return
        self._killed = True
        with contextlib.suppress(OSError):  # no process of the group is left
            if os.name == "posix":
                # The program itself may have ended and been waited for; its number stays taken while a child lives.
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with contextlib.suppress(OSError):
            self._input.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        for thread in self._threads:
            # This may run in one of them, where the interpreter happens to clean up; and a process that has left the
            # group may hold a pipe open for ever.
            if thread is not threading.current_thread():
                thread.join(_EXIT_SECONDS)

    def _read_answers(self, pipe: IO[bytes]) -> None:
        lines: list[str] = []
        with pipe:
            while self._unread <= MAX_ANSWER and (line := pipe.readline(MAX_ANSWER + 1)):
                text = _printable(line)
                with self._arrived:
                    self._unread += len(line)
                    if text:
                        lines.append(text)
                    elif lines:
                        self._answers.append("\n".join(lines))
                        lines = []
                        self._arrived.notify_all()
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()

    def _read_complaints(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(_MAX_COMPLAINT):
                self._complaints.append(line)


def _printable(line: bytes) -> str:
    """A line without its end and without control characters, which the protocol tells to ignore."""
    text = line.decode("utf-8", "replace").replace("\t", " ")
    return "".join(c for c in text if c.isprintable()).strip()
