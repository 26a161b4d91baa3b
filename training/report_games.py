"""Games as a page of HTML holds them: moves and what they removed, so that the page need not know the rules.

A ply is two letters, the action in base 26; small letters where Black is to place, capitals where White is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv, States
from lifeline.errors import IllegalMoveError, NotationError, RecordError
from lifeline.game_record import GameRecord, is_whole
from lifeline.kernels import spec_of
from lifeline.notation import parse_move
from lifeline.rules import Position, Rules

BoolArray = npt.NDArray[np.bool_]


class GameSelection:
    """The first games of each two players, as many of each, so that they are no more than `limit` in all.

    Attributes:
        total: games seen.
    """

    def __init__(self, games: Iterable[GameRecord], limit: int) -> None:
        self.total, kept = 0, 0
        self._limit = limit
        self._by_players: dict[tuple[str, ...], list[tuple[int, GameRecord]]] = {}
        for game in games:
            self.total += 1
            players = tuple(sorted(p.name for p in game.players))
            self._by_players.setdefault(players, []).append((self.total, game))
            kept += 1
            if kept > 2 * limit:  # memory stays bounded; the share of each can only fall as more come
                kept = self._cut()
        self._cut()

    @property
    def games(self) -> list[tuple[int, GameRecord]]:
        """Their numbers, counted from 1 over all games seen, and the games."""
        return sorted((entry for some in self._by_players.values() for entry in some), key=lambda entry: entry[0])

    def _cut(self) -> int:
        share = self._share()
        for some in self._by_players.values():
            del some[share:]
        return sum(map(len, self._by_players.values()))

    def _share(self) -> int:
        left, share = self._limit, 0
        sizes = sorted(map(len, self._by_players.values()))
        for i, size in enumerate(sizes):
            if size * (len(sizes) - i) > left:
                return left // (len(sizes) - i)
            left, share = left - size, size
        return share


def code(action: int, capital: bool = False) -> str:
    """Two letters for an action or cell."""
    text = chr(97 + action // 26) + chr(97 + action % 26)
    return text.upper() if capital else text


def game_data(number: int, record: GameRecord, players: Sequence[str], reasons: Sequence[str]) -> dict[str, Any]:
    """A game as a value of JSON.

    Returns:
        n: its number; p: indices of seat 0 and seat 1 in `players`; w: the winning seat and r: the reason's index in
        `reasons`, both None for no result; m: the plies; x: {ply, counted from 1: the cells it removed}; o: how many
        plies are the opening; and, where they are known, k: its pair; s: the stones at its start and u: whether
        sides had been swapped there.
    Raises:
        RecordError: a move of it is illegal, or it is no game of these rules.
    """
    rules = record.rules
    start = Position.start(rules) if record.start is None else Position.parse(record.start, rules)
    plies, removed = _replay(number, record, start)
    extra = record.extra or {}
    opening = extra.get("opening_plies")
    data: dict[str, Any] = {
        "n": number,
        "p": [players.index(p.name) for p in record.players],
        "w": None if record.result is None else record.result.winner,
        "r": None if record.result is None else reasons.index(record.result.reason),
        "m": plies,
        "x": removed,
        "o": opening if is_whole(opening, 0, len(record.moves)) else 0,
    }
    if is_whole(extra.get("pair"), 0, 2**31):
        data["k"] = extra["pair"]
    if record.start is not None:
        data |= {"s": "".join(start.stones), "u": start.swapped}
    return data


def _replay(number: int, record: GameRecord, start: Position) -> tuple[str, dict[int, str]]:
    """The plies, and the cells that each removed; by the kernels, as thousands of games are to be looked at."""
    rules, env = record.rules, BatchEnv(record.rules, 1)
    env.reset(positions=[start])
    states, plies, actions, swapped = [env.gather()[0]], "", list[int](), start.swapped
    for ply, move in enumerate(record.moves, start=1):
        try:
            (action,) = parse_move(move, rules.board)
            plies += code(action, capital=bool(env.to_play[0]) != swapped)
            env.step(np.array([action]))
        except (NotationError, IllegalMoveError, ValueError) as error:
            raise RecordError(f"game {number}, ply {ply}: {error}") from None
        actions.append(action)
        swapped ^= action == rules.swap_action
        states.append(env.gather()[0])
    taken, removed = _occupied(np.array(states), rules), {}
    for ply, action in enumerate(actions, start=1):
        before = taken[ply - 1]
        if action < rules.num_cells:
            before[action] = True
        if len(gone := np.flatnonzero(before & ~taken[ply])):
            removed[ply] = "".join(code(int(cell)) for cell in gone)
    return plies, removed


def _occupied(states: States, rules: Rules) -> BoolArray:
    """bool [T + 1, N]: which cells have a stone, from rows of `BatchEnv.gather`; see kernels.py for their layout."""
    spec = spec_of(rules)
    boards = states[:, : 2 * len(spec.words)].reshape(len(states), 2, -1)
    bits = boards[:, :, spec.cell_bit >> 6] >> (spec.cell_bit & 63).astype(np.uint64) & np.uint64(1)
    return np.asarray(bits.any(axis=1), np.bool_)
