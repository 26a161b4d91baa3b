"""The Go Text Protocol, version 2: lines in, answers out. What the commands do stands in gtp_commands.py.

Source: Gunnar Farnebäck, Specification of the Go Text Protocol, version 2, draft 2.
"""

from __future__ import annotations

import contextlib
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from lifeline.errors import LifelineError
from lifeline.play.gtp_analysis import Telling
from lifeline.play.gtp_commands import GtpSession, Refusal
from lifeline.play.lines import MAX_LINE, LineReader

_MAX_MESSAGE = 500

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# GTP's numbers have 31 bits; there is no reason to be as strict with what is only sent back.
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Answer:
    """What is said to one line.

    Attributes:
        ok: whether the command was carried out.
        number: the line's number, as it was sent; "" where it had none.
        text: the answer without what GTP puts around it; lines, none of them empty but for the first.
        analysis: to be told in its place until the next line comes.
        quits: the conversation is over.
        fault: a traceback, where a mistake in this program is the reason; "" else.
    """

    ok: bool
    number: str
    text: str = ""
    analysis: Telling | None = None
    quits: bool = False
    fault: str = ""

    def head(self) -> str:
        """The answer without the newline that ends its last line and the empty line behind it."""
        space = " " if self.text and not self.text.startswith("\n") else ""
        return f"{'=' if self.ok else '?'}{self.number}{space}{self.text}"


class GtpEngine:
    """Answers lines, one at a time, and reads or writes nothing.

    Args:
        session: carries the commands out.
    """

    def __init__(self, session: GtpSession) -> None:
        self.session = session

    def handle(self, line: str) -> Answer | None:
        """The answer to a line, whatever is in it; None where there is nothing on it. Raises nothing.

        Args:
            line: with its newline or without; at most `MAX_LINE` characters are looked at.
        """
        text, comment, _ = _CONTROL.sub("", line[: MAX_LINE + 1]).partition("#")
        words = [word for word in text.replace("\t", " ").split(" ") if word]
        number = words.pop(0) if words and _NUMBER.fullmatch(words[0]) else ""
        try:
            if len(line.rstrip("\r\n")) > MAX_LINE and not comment:
                raise Refusal(f"syntax error: a line has at most {MAX_LINE} characters")
            if not words and not number:
                return None
            if not words:
                raise Refusal("syntax error: a number and no command")
            result = self.session.run(words[0], words[1:])
        except LifelineError as error:
            return Answer(False, number, _one_line(str(error)))
        except Exception as error:
            # A mistake in this program must cost one command, not the game.
            said = _one_line(f"internal error: {type(error).__name__}: {error}")
            return Answer(False, number, said, fault=traceback.format_exc())
        if isinstance(result, Telling):
            return Answer(True, number, analysis=result)
        return Answer(True, number, result, quits=words[0] == "quit")


def serve(engine: GtpEngine, reader: LineReader, out: BinaryIO) -> None:
    """Hold a conversation: until quit, the end of the lines, or nobody is left to hear the answers.

    Args:
        out: gets the answers, each flushed at once.
    """

    def say(text: str) -> None:
        # File names may hold bytes that are no text.
        out.write(text.encode(errors="backslashreplace"))
        out.flush()

    try:
        while (line := reader.next()) is not None:
            answer = engine.handle(line)
            if answer is None:
                continue
            if answer.fault:
                _complain(answer.fault)
            say(answer.head() + "\n")
            if answer.analysis is not None:
                _tell(answer.analysis, reader, say)
            say("\n")
            if answer.quits:
                return
    except OSError:  # closed
        return


def _tell(analysis: Telling, reader: LineReader, say: Callable[[str], None]) -> None:
    """Say an analysis line by line. What goes wrong in it ends it: the answer has begun, and stays the only one."""
    lines = analysis.lines(reader.arrived)
    while True:
        try:
            line = next(lines, None)
        except Exception:
            _complain(traceback.format_exc())
            return
        if line is None:
            return
        say(line + "\n")


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody hears that: no reason to end a game
        print(text, file=sys.stderr, flush=True)


def _one_line(message: str) -> str:
    """A message as GTP wants it: one line of printable characters, and not without end."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(message.split()))[:_MAX_MESSAGE]
