"""What `lifeline show` shows: a position with its last move, out of a list of moves or a record, and as data."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from lifeline.board import Board
from lifeline.errors import NotationError, RecordError
from lifeline.game_record import GameRecord
from lifeline.groups import shape_of
from lifeline.movelist import import_moves
from lifeline.notation import action_text, parse_move
from lifeline.records import read_records
from lifeline.rules import Position, Rules

COLOUR_NAMES = {"b": "black", "w": "white"}


@dataclass(frozen=True)
class Shown:
    """A position and how it came about.

    Attributes:
        position: the position.
        last: the actions of the turn played last, in order: one or two stones; or a swap or point of komi. Empty where
            nothing is known of it.
        winner: the seat that has won, on the board or by the record; None while the game goes on.
        reason: why, in the words of a record; None while the game goes on.
    """

    position: Position
    last: tuple[int, ...] = ()
    winner: int | None = None
    reason: str | None = None


def of_position(position: Position, last: tuple[int, ...] = ()) -> Shown:
    """A position whose result is that of the board."""
    return Shown(position, last, position.winner, "played out" if position.is_over else None)


def of_moves(text: str, rules: Rules) -> Shown:
    """The position after moves from the start of the game.

    Args:
        text: cells, two-stone turns such as "c4,e2", swap and komi, separated by blanks.

    Raises:
        RecordError: no such list, or an illegal move.
    """
    steps = _steps(import_moves(text, rules, "moves"))
    return of_position(*steps[-1])


def of_record(source: str | IO[bytes], game: int = 1, turn: int | None = None) -> Shown:
    """A position of a recorded game.

    Args:
        source: a file of records, or one open for reading.
        game: which of its games, from 1.
        turn: the position after so many turns, and the swap that may follow them; None is the last.

    Raises:
        RecordError: the file cannot be read, or has no such game, or that game no such turn.
    """
    name, number, record = source if isinstance(source, str) else "-", 0, None
    # Only the game asked for is played.
    for number, record in enumerate(read_records(source, replay=False), start=1):  # noqa: B007
        if number == game:
            break
    if record is None or number < game:
        raise RecordError(f"has {number} games, and no game {game}", name)
    try:
        steps = _steps(record)
    except RecordError as error:
        raise RecordError(error.reason, name, game) from None
    position, last = steps[-1]
    if turn is None:
        shown = of_position(position, last)
        if record.result is None:
            return shown
        return Shown(position, last, record.result.winner, record.result.reason)
    at = [step for step in steps if step[0].turn == turn and not step[0].placed]
    if not at:
        first = steps[0][0].turn
        raise RecordError(f"game {game} has turns {first} to {position.turn}, and no position after {turn}", name)
    return of_position(*at[-1])


def _steps(record: GameRecord) -> list[tuple[Position, tuple[int, ...]]]:
    """The positions of a game, each with the actions of the turn played last."""
    geometry = record.rules.board
    steps: list[tuple[Position, tuple[int, ...]]] = []
    for ply, position in enumerate(record.positions()):
        if ply == 0:
            steps.append((position, ()))
            continue
        before, last = steps[-1]
        action = parse_move(record.moves[ply - 1], geometry)[0]
        steps.append((position, (*last, action) if before.placed else (action,)))
    return steps


def read_heat(path: Path, geometry: Board) -> dict[int, float]:
    """A number for cells from a JSON file: a list of one for each cell in cell order, or an object by label.

    A null is a cell without one.

    Raises:
        NotationError: no such file, no such cell, or no number from 0 to 1; the message names file and cell, or line
            and column where it is no JSON.
    """
    try:
        data = json.loads(path.read_bytes(), object_pairs_hook=_Pairs)
    except OSError as error:
        raise NotationError(f"{path}: cannot be read: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        raise NotationError(f"{path}: line {error.lineno}, column {error.colno}: no JSON: {error.msg}") from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise NotationError(f"{path}: no JSON: expected a list of numbers or an object of them") from None
    if isinstance(data, _Pairs):
        return _heat_of(((_cell(path, geometry, label), value) for label, value in data), path, geometry)
    if not isinstance(data, list):
        raise NotationError(f"{path}: expected a list of numbers or an object of them, not {type(data).__name__}")
    if len(data) != geometry.num_cells:
        raise NotationError(
            f"{path}: a board of base {geometry.base} has {geometry.num_cells} cells, and the list {len(data)} numbers"
        )
    return _heat_of(enumerate(data), path, geometry)


class _Pairs(tuple[tuple[str, Any], ...]):
    """An object of JSON with all its keys, those that come twice included."""


def _cell(path: Path, geometry: Board, label: str) -> int:
    try:
        return geometry.cell(label)
    except NotationError as error:
        raise NotationError(f"{path}: {error}") from None


def _heat_of(values: Iterable[tuple[int, Any]], path: Path, geometry: Board) -> dict[int, float]:
    pairs = list(values)
    cell, times = Counter(cell for cell, _ in pairs).most_common(1)[0] if pairs else (0, 0)
    if times > 1:
        raise NotationError(f"{path}: {geometry.labels[cell]} is there {times} times")
    for cell, value in pairs:
        known = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        # Written so that NaN, which compares with nothing, is out of range.
        if not known or not (value is None or 0 <= value <= 1):
            told = repr(value)[:40] if isinstance(value, int | float | str | bool) else type(value).__name__
            raise NotationError(f"{path}: {geometry.labels[cell]} must have a number from 0 to 1, not {told}")
    return {cell: float(value) for cell, value in pairs if value is not None}


def describe(shown: Shown) -> dict[str, Any]:
    """A position as data for JSON.

    Returns:
        rules (base, opening, komi, adjacent_setup), position (text), turn (completed turns), to_play (seat, colour),
        legal (move texts), last (move texts), the groups and regions of `shape_data`, and result (winner: seat, colour,
        reason), which is null while the game goes on.
    """
    position, rules = shown.position, shown.position.rules
    result = None
    if shown.winner is not None:
        colour = position.colour if shown.winner == position.to_play else "w" if position.colour == "b" else "b"
        result = {"winner": shown.winner, "colour": COLOUR_NAMES[colour], "reason": shown.reason}
    return {
        "rules": rules_data(rules),
        "position": position.text(),
        "turn": position.turn,
        "to_play": {"seat": position.to_play, "colour": COLOUR_NAMES[position.colour]},
        "legal": position.legal_moves(),
        "last": [action_text(action, rules.board) for action in shown.last],
        **shape_data(position),
        "result": result,
    }


def rules_data(rules: Rules) -> dict[str, Any]:
    """base, opening, komi and adjacent_setup."""
    return dataclasses.asdict(rules)


def shape_data(position: Position) -> dict[str, Any]:
    """The groups and regions of a board as data for JSON.

    Returns:
        groups (colour, cells, alive, regions and lifelines: indices) and regions (cells, colours they touch).
    """
    labels, shape = position.rules.board.labels, shape_of(position.rules.board, position.stones)
    return {
        "groups": [
            {
                "colour": COLOUR_NAMES[group.colour],
                "cells": [labels[cell] for cell in group.cells],
                "alive": group.alive,
                "regions": list(group.regions),
                "lifelines": list(group.lifelines),
            }
            for group in shape.groups
        ],
        "regions": [
            {
                "cells": [labels[cell] for cell in region.cells],
                "colours": [COLOUR_NAMES[colour] for colour in region.colours],
            }
            for region in shape.regions
        ],
    }
