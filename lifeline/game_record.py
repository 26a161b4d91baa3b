"""One game as a value: what was played, by whom, and how it ended.

A record that exists is a valid one: its moves have been played by rules.py, and its result is that of the board.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from typing import Any

from lifeline.errors import IllegalMoveError, NotationError, RecordError
from lifeline.notation import action_text, parse_move
from lifeline.rules import Position, Rules

REASONS = ("played out", "resigned", "time", "illegal move", "adjudicated")

# Limits keep hostile files from asking for absurd amounts of work. Games end near N = 397 plies on the largest board.
MAX_PLIES = 4_000
MAX_DEPTH = 16
MAX_INTEGER = 2**64 - 1
MAX_NAME = 200
MAX_SECONDS = 1_000_000_000


class FieldError(RecordError):
    """What is wrong with one field, before it is known where in a line the field stands.

    Attributes:
        path: the keys and indices that lead to it in the JSON value.
    """

    def __init__(self, path: tuple[str | int, ...], reason: str) -> None:
        self.path = path
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[FieldError], tuple[tuple[str | int, ...], str]]:
        return FieldError, (self.path, self.reason)


@dataclass(frozen=True)
class PlayerInfo:
    """Who sat at a seat.

    Attributes:
        name: 1 to 200 characters; "?" where it is not known.
        info: anything else, such as {"simulations": 64}: a JSON object without the key `name`. Not to be changed.
    """

    name: str = "?"
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """How a game ended.

    Attributes:
        winner: the winning seat, 0 or 1.
        reason: "played out" (by the rules, on the board), "resigned", "time" (the player to move had none left),
            "illegal move" (the player to move tried one, which is not among the moves) or "adjudicated".
    """

    winner: int
    reason: str


@dataclass(frozen=True)
class GameRecord:
    """A game. Validated when made: the moves are played by the rules.

    Attributes:
        rules: what was played.
        moves: T plies as texts in lower case: cell labels, "swap", "komi". At most 4000.
        result: None for a game that is not finished.
        players: of seat 0 and seat 1.
        start: the position text the moves start from; None for the start of the game.
        seconds_used, seconds_left: T numbers of seconds >= 0, on the clock of the player who made the ply: spent on it,
            and left after it; None for a ply without.
        values: T numbers in [-1, 1], what the player to move thought of the position before the ply; None for a ply
            without.
        visits: T whole numbers, simulations behind each value; None for a ply without.
        id: a name no other game of its collection has.
        date: ISO 8601, such as "2026-11-30" or "2026-11-30T12:00:00Z".
        seed: of what was random in the game, 0..2**64-1.
        extra: anything else, a JSON object; not to be changed.
        replay: False where the rules have been kept by whoever played the game: moves, start and result are then
            believed, not played. Everything else is checked all the same.

    Raises:
        RecordError: a field is no such thing, a move is illegal or comes after the end, or the result contradicts the
            board; the message names the field or ply.
    """

    rules: Rules
    moves: tuple[str, ...]
    result: Result | None = None
    players: tuple[PlayerInfo, PlayerInfo] = (PlayerInfo(), PlayerInfo())
    start: str | None = None
    seconds_used: tuple[float | None, ...] | None = None
    seconds_left: tuple[float | None, ...] | None = None
    values: tuple[float | None, ...] | None = None
    visits: tuple[int | None, ...] | None = None
    id: str | None = None
    date: str | None = None
    seed: int | None = None
    extra: dict[str, Any] | None = None
    replay: InitVar[bool] = True

    def __post_init__(self, replay: bool) -> None:
        if len(self.moves) > MAX_PLIES:
            raise FieldError(("moves",), f"{len(self.moves)} plies are more than {MAX_PLIES}, and than any game has")
        self._check_labels()
        self._check_series("seconds_used", 0, MAX_SECONDS)
        self._check_series("seconds_left", 0, MAX_SECONDS)
        self._check_series("values", -1, 1)
        self._check_series("visits", 0, MAX_INTEGER, whole=True)
        self._check_result()
        if replay:
            self._check_board()

    def _check_labels(self) -> None:
        if len(self.players) != 2:
            raise FieldError(("players",), "there are two players")
        for seat, player in enumerate(self.players):
            _check_text(player.name, ("players", seat, "name"))
            _check_object(player.info, ("players", seat))
            if "name" in player.info:
                raise FieldError(("players", seat, "name"), "a player's info cannot have the key name")
        if self.id is not None:
            _check_text(self.id, ("id",))
        if self.date is not None:
            _check_date(self.date)
        if self.seed is not None and not is_whole(self.seed, 0, MAX_INTEGER):
            raise FieldError(("seed",), f"a seed is a whole number from 0 to 2**64-1, not {short(self.seed)}")
        if self.extra is not None:
            _check_object(self.extra, ("extra",))

    def _check_series(self, name: str, low: int, high: int, whole: bool = False) -> None:
        series = getattr(self, name)
        if series is None:
            return
        if len(series) != len(self.moves):
            raise FieldError((name,), f"{name} has {len(series)} entries for {len(self.moves)} plies")
        for i, value in enumerate(series):
            if value is None or is_whole(value, low, high):
                continue
            # Written so that NaN, which compares with nothing, is out of range.
            if whole or not isinstance(value, float) or not low <= value <= high:
                kind = "a whole number" if whole else "a number"
                raise FieldError((name, i), f"{name} of ply {i + 1}: {kind} from {low} to {high}, not {short(value)}")

    def _check_result(self) -> None:
        if self.result is None:
            return
        if not is_whole(self.result.winner, 0, 1):
            raise FieldError(("winner",), f"the winner is seat 0 or 1, not {short(self.result.winner)}")
        if self.result.reason not in REASONS:
            raise FieldError(("reason",), f"a reason is one of {', '.join(REASONS)}, not {short(self.result.reason)}")

    def _check_board(self) -> None:
        """Play the moves and hold the result against the last position."""
        position = self._first()
        for i, move in enumerate(self.moves):
            position = self._played(position, i, move)
        result = self.result
        if position.is_over and (result is None or (result.winner, result.reason) != (position.winner, "played out")):
            told = "none" if result is None else f"seat {result.winner}, {result.reason}"
            path = "reason" if result is not None and result.winner == position.winner else "winner"
            raise FieldError((path,), f"the board says that seat {position.winner} won, played out; the result: {told}")
        if position.is_over or result is None:
            return
        if result.reason == "played out":
            raise FieldError(("reason",), f"not played out: the game goes on in {position.text()}")
        if result.reason in ("time", "illegal move") and result.winner == position.to_play:
            raise FieldError(("winner",), f"seat {result.winner} is to move and cannot have won by {result.reason}")

    def _first(self) -> Position:
        if self.start is None:
            return Position.start(self.rules)
        try:
            return Position.parse(self.start, self.rules)
        except NotationError as error:
            raise FieldError(("start",), str(error)) from None

    def _played(self, position: Position, i: int, move: str) -> Position:
        try:
            action, *more = parse_move(move, self.rules.board)
            if more or action_text(action, self.rules.board) != move:
                raise NotationError(f"a ply is one cell, swap or komi in lower case, not {move[:40]!r}")
            return position.play(action)
        except (NotationError, IllegalMoveError) as error:
            raise FieldError(("moves", i), f"ply {i + 1}: {error}") from None

    def positions(self) -> Iterator[Position]:
        """The T + 1 positions of the game, from its start.

        Raises:
            RecordError: an illegal move, which only a record made with `replay=False` can have.
        """
        position = self._first()
        yield position
        for i, move in enumerate(self.moves):
            position = self._played(position, i, move)
            yield position


def is_whole(value: object, low: int, high: int) -> bool:
    """Whether a value is a whole number from `low` to `high`; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _check_text(value: Any, path: tuple[str | int, ...]) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME:
        name = path[-1] if len(path) == 1 else f"the name of player {path[1]}"
        raise FieldError(path, f"{name} must be a text of 1 to {MAX_NAME} characters, not {short(value)}")


def _check_date(value: str) -> None:
    try:
        datetime.fromisoformat(value if value.isascii() and len(value) <= 40 else "")
    except ValueError:
        raise FieldError(("date",), f"a date is ISO 8601, such as 2026-11-30, not {short(value)}") from None


def _check_object(value: Any, path: tuple[str | int, ...]) -> None:
    if not isinstance(value, dict):
        raise FieldError(path, f"{path[0]} must be an object of JSON, not {short(value)}")
    _check_json(value, path)


def _check_json(value: Any, path: tuple[str | int, ...]) -> None:
    """Refuse what does not come back from JSON as it went in."""
    if len(path) > MAX_DEPTH:
        raise FieldError(path, f"{path[0]} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise FieldError(path, f"the keys of {path[0]} must be texts, not {short(key)}")
            _check_json(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            _check_json(inner, (*path, i))
    elif isinstance(value, float) and not math.isfinite(value):
        raise FieldError(path, f"{path[0]} holds a number that is not finite")
    elif isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise FieldError(path, f"{path[0]} holds a whole number beyond 64 bits")
    elif not isinstance(value, str | int | float | None):
        raise FieldError(path, f"{path[0]} holds what JSON has no word for: {type(value).__name__}")


def short(value: object) -> str:
    """A value for a message: one line, and short whatever it is."""
    if isinstance(value, dict | list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return "a huge number"
    return repr(value[:40] if isinstance(value, str) else value)[:60]
