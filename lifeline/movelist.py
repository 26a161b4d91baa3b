"""Move lists as AbstractPlay writes them: `a1,c1` for a turn of two stones, `swap`, move numbers if any."""

from __future__ import annotations

import re
from typing import IO

from lifeline.errors import IllegalMoveError, NotationError, RecordError
from lifeline.game_record import MAX_PLIES, GameRecord, Result
from lifeline.notation import action_text, parse_move
from lifeline.rules import STONES, Position, Rules

# Some ten times the text of the longest game.
MAX_MOVE_LIST = 100_000

_TOKEN = re.compile(r"\S+")
# "1." or "1..." alone, or in front of its move.
_NUMBER = re.compile(r"[0-9]{1,4}\.{1,3}", re.ASCII)


def import_moves(source: str | IO[str] | IO[bytes], rules: Rules, file: str | None = None) -> GameRecord:
    """The record of a list of moves, separated by blanks or ends of lines.

    A game that is over is recorded as played out. AbstractPlay ends a game as soon as a mover wipes himself out, when
    the enemy still has to place the winning stone: such a game is recorded as adjudicated to the enemy. Any other is
    not finished. Move numbers are not looked at.

    Args:
        source: the text, or a file open for reading.
        rules: what was played.
        file: the name of the source, for messages.

    Raises:
        RecordError: no such list, or an illegal move; the message names line, column and reason.
    """
    text = source if isinstance(source, str) else _read(source, file)
    if len(text) > MAX_MOVE_LIST:
        raise RecordError(f"a move list of more than {MAX_MOVE_LIST} characters", file)
    position, plies = Position.start(rules), list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        for token in _TOKEN.finditer(line):
            numbered = _NUMBER.match(token[0])
            at = token.start() + (numbered.end() if numbered else 0)
            move = line[at : token.end()]
            if not move:
                continue
            try:
                if len(plies) >= MAX_PLIES:
                    raise NotationError(f"more than {MAX_PLIES} plies")
                actions = parse_move(move, rules.board)
                position = position.play(move)
            except (NotationError, IllegalMoveError) as error:
                raise RecordError(f"ply {len(plies) + 1}: {error}", file, number, at + 1) from None
            plies += [action_text(action, rules.board) for action in actions]
    # The moves have just been played.
    return GameRecord(rules, tuple(plies), _result(position), replay=False)


def _read(source: IO[str] | IO[bytes], file: str | None) -> str:
    try:
        text = source.read(MAX_MOVE_LIST + 1)
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror or error}", file) from None
    except UnicodeDecodeError:  # of a file open as text
        raise RecordError("not a text in UTF-8", file) from None
    try:
        return text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode().split("\n")
        raise RecordError("not a text in UTF-8", file, len(before), len(before[-1]) + 1) from None


def _result(position: Position) -> Result | None:
    if position.winner is not None:
        return Result(position.winner, "played out")
    mover = STONES[(position.turn + 1) % 2]
    if position.turn >= position.rules.opening_turns and position.placed == 0 and mover not in position.stones:
        return Result(position.to_play, "adjudicated")
    return None
