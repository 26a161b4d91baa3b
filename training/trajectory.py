"""Finished games, and how they cross process borders and lie on disk: as few flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Trajectory:
    """The searched plies of one finished game.

    Attributes:
        states: uint64 [T, K], packed states before each ply.
        policy_targets: float16 [T, A]; all zero at plies that teach no policy, searched with few simulations.
        root_values: float32 [T], for the player to move.
        surprise: float16 [T], how far the policy target was from the network's policy: Kullback-Leibler divergence in
            nats; 0 at plies that teach no policy.
        to_play: int8 [T], the seat to move.
        actions: int16 [T].
        solved: int8 [T], +1 where the player to move is known to win, -1 where to lose, 0 where neither.
        strayed: int8 [T], 1 where the action was a random one, whatever the search said.
        outcome: +1 if seat 0 won, -1 if seat 1 did.
        random_plies: plies played at random before the first of these.
        game_id: a number no other game of the run has.
        version: of the weights the game ended with: learner steps behind them.
        resigned: the seat that gave the game up after the last of these plies, -1 if it was played out.
        would_resign: the seat that would have, in a game that was played on to see what comes of it; else -1.
        drill: 1 if it is no game but an ending made to be learnt from, its plies not all there; see `drills`.
    """

    states: npt.NDArray[np.uint64]
    policy_targets: npt.NDArray[np.float16]
    root_values: npt.NDArray[np.float32]
    surprise: npt.NDArray[np.float16]
    to_play: npt.NDArray[np.int8]
    actions: npt.NDArray[np.int16]
    solved: npt.NDArray[np.int8]
    strayed: npt.NDArray[np.int8]
    outcome: int
    random_plies: int
    game_id: int
    version: int
    resigned: int = -1
    would_resign: int = -1
    drill: int = 0

    def __len__(self) -> int:
        return len(self.actions)


# Name and dtype of what there is one of for each ply, and for each game.
PLY_FIELDS = {
    "states": np.uint64,
    "policy_targets": np.float16,
    "root_values": np.float32,
    "surprise": np.float16,
    "to_play": np.int8,
    "actions": np.int16,
    "solved": np.int8,
    "strayed": np.int8,
}
GAME_FIELDS = {
    "outcome": np.int8,
    "random_plies": np.int16,
    "game_id": np.uint64,
    "version": np.int64,
    "resigned": np.int8,
    "would_resign": np.int8,
    "drill": np.int8,
}


# Earlier versions had none of these: zeros stand for them in what they wrote.
_LATER = {"solved", "strayed", "drill"}


def without_drills(games: Iterable[Trajectory]) -> list[Trajectory]:
    """Those that were played."""
    return [game for game in games if not game.drill]


def by_size(games: Iterable[Trajectory]) -> list[list[Trajectory]]:
    """Games sorted by the size of their boards, each size in its order."""
    groups: dict[int, list[Trajectory]] = {}
    for game in games:
        groups.setdefault(game.policy_targets.shape[1], []).append(game)
    return list(groups.values())


def pack(games: Sequence[Trajectory]) -> Arrays:
    """Some games of one size, at least one, as flat arrays: plies one behind the other, and a length for each game."""
    arrays: Arrays = {name: np.concatenate([getattr(g, name) for g in games]) for name in PLY_FIELDS}
    for name, dtype in GAME_FIELDS.items():
        arrays[name] = np.array([getattr(g, name) for g in games], dtype)
    arrays["length"] = np.array([len(g) for g in games], np.int32)
    return arrays


def unpack(arrays: Arrays) -> list[Trajectory]:
    """The games of `pack`.

    Raises:
        KeyError, ValueError: the arrays are not such games.
    """
    for name in _LATER & PLY_FIELDS.keys() - arrays.keys():
        arrays[name] = np.zeros(len(arrays["actions"]), PLY_FIELDS[name])
    for name in _LATER & GAME_FIELDS.keys() - arrays.keys():
        arrays[name] = np.zeros(len(arrays["length"]), GAME_FIELDS[name])
    ends = np.cumsum(arrays["length"])
    if len(ends) and ends[-1] != len(arrays["actions"]):
        raise ValueError("the lengths of the games do not add up")
    games = []
    for i, end in enumerate(ends):
        rows = slice(int(end - arrays["length"][i]), int(end))
        fields: dict[str, Any] = {name: arrays[name][rows] for name in PLY_FIELDS}
        fields |= {name: int(arrays[name][i]) for name in GAME_FIELDS}
        games.append(Trajectory(**fields))
    return games
