"""What is learnt from: samples made of finished games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from training.trajectory import Trajectory


@dataclass(frozen=True)
class Later:
    """How the games of M samples went on; for the auxiliary targets.

    Attributes:
        replies: float16 [M, A], policy targets of the next ply; rows of zeros where there is none.
        states: uint64 [M, K], packed states some plies later, or before the last ply where the game ends earlier.
        values: float32 [M] in [0, 1], what the search thought of those, for the player to move at the sample.
        plies_left: int32 [M], plies of the game behind the sample's.
        known: bool [M], whether there was anything to foresee: not where the next move was a random one.
    """

    replies: npt.NDArray[np.float16]
    states: npt.NDArray[np.uint64]
    values: npt.NDArray[np.float32]
    plies_left: npt.NDArray[np.int32]
    known: npt.NDArray[np.bool_]

    def take(self, rows: npt.NDArray[np.int64]) -> Later:
        """Some of them, in the order of `rows`."""
        return Later(self.replies[rows], self.states[rows], self.values[rows], self.plies_left[rows], self.known[rows])


@dataclass(frozen=True)
class Samples:
    """M positions with their targets, indexed by cells; planes and grid are made when a batch is drawn.

    Attributes:
        states: uint64 [M, K], packed states.
        policy_targets: float16 [M, A]; rows of zeros teach no policy.
        value_targets: float32 [M] in [0, 1], probability that the player to move wins.
        versions: int64 [M], of the weights each was made with.
        root_values: float32 [M] in [-1, 1], the search's values for the player to move, or the solver's.
        to_play: int8 [M], the seat to move.
        plies_left: int32 [M], so many of the samples behind each are the next plies of its game.
        plies_ahead: int32 [M], so many of them were not played at random, nor come behind a random move; -1 where the
            sample's own move was random.
        weights: float32 [M], how often each is to be drawn, against 1 on average in its game.
        later: how their games went on, where it was asked for.
    """

    states: npt.NDArray[np.uint64]
    policy_targets: npt.NDArray[np.float16]
    value_targets: npt.NDArray[np.float32]
    versions: npt.NDArray[np.int64]
    root_values: npt.NDArray[np.float32]
    to_play: npt.NDArray[np.int8]
    plies_left: npt.NDArray[np.int32]
    plies_ahead: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    later: Later | None = None

    @classmethod
    def single(
        cls,
        states: npt.NDArray[np.uint64],
        policy_targets: npt.NDArray[np.float16],
        value_targets: npt.NDArray[np.float32],
    ) -> Samples:
        """Positions without a game around them."""
        count = len(states)
        return cls(
            states,
            policy_targets,
            value_targets,
            versions=np.zeros(count, np.int64),
            root_values=2 * value_targets - 1,
            to_play=np.zeros(count, np.int8),
            plies_left=np.zeros(count, np.int32),
            plies_ahead=np.zeros(count, np.int32),
            weights=np.ones(count, np.float32),
        )

    def __len__(self) -> int:
        return len(self.states)

    @property
    def policy_share(self) -> float:
        """Share of the samples that teach a policy."""
        bits = self.policy_targets.view(np.uint16)  # six times as fast as to compare numbers of 16 bits
        return float(bits.any(axis=1).mean())

    def take(self, rows: npt.NDArray[np.int64]) -> Samples:
        """Some of the samples, in the order of `rows`."""
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "later"}
        return replace(self, **arrays, later=self.later and self.later.take(rows))


def winners(game: Trajectory) -> npt.NDArray[np.int64]:
    """Who wins from each ply on, as far as the rest of the game tells: int64 [T], +1 seat 0, -1 seat 1, 0 not known.

    The next ply that is solved says it, or else the outcome; but nothing beyond a random move does.
    """
    length = len(game)
    seat = np.where(game.to_play == 0, 1, -1)
    tells = np.append((game.solved != 0) | (game.strayed != 0), True)
    at = np.where(tells, np.arange(length + 1), length)
    following = np.minimum.accumulate(at[::-1])[::-1][:length]
    return np.append(game.solved * seat, game.outcome)[following]


def plies_ahead(game: Trajectory) -> npt.NDArray[np.int32]:
    """How many plies behind each ply come of moves that were chosen, not drawn at random: int32 [T].

    It is -1 where the ply's own move was drawn.
    """
    length = len(game)
    at = np.where(game.strayed != 0, np.arange(length), length - 1)
    ahead = np.minimum.accumulate(at[::-1])[::-1] - np.arange(length)
    return np.where(game.strayed != 0, -1, ahead).astype(np.int32)


def samples_of(trajectories: Sequence[Trajectory], root_value_share: float, surprise_share: float) -> Samples:
    """All plies of some games of one size of board, at least one, as samples.

    Args:
        root_value_share: share of the search's value in the value target, in [0, 1]; the rest is the outcome. Plies
            that were solved have the solver's value.
        surprise_share: share of the weights given by surprise, in [0, 1]: in each game in proportion to how far the
            search's policy was from the network's. Source: KataGo, "policy surprise weighting" (Wu 2019 and after).
    """
    values, weights = [], []
    for t in trajectories:
        seat = np.where(t.to_play == 0, 1, -1)
        winner = winners(t)
        root_share = np.where(winner == 0, 1, root_value_share)
        value = (1 - root_share) * winner * seat + root_share * t.root_values
        values.append((1 + np.where(t.solved != 0, t.solved, value)) / 2)
        surprise = t.surprise.astype(np.float32)
        mean = float(surprise.mean())
        by_surprise = surprise / mean if mean > 0 else np.ones(len(t), np.float32)
        weights.append(1 - surprise_share + surprise_share * by_surprise)
    return Samples(
        states=np.concatenate([t.states for t in trajectories]),
        policy_targets=np.concatenate([t.policy_targets for t in trajectories]),
        value_targets=np.concatenate(values).astype(np.float32),
        versions=np.concatenate([np.full(len(t), t.version) for t in trajectories]),
        root_values=np.concatenate([np.where(t.solved != 0, t.solved, t.root_values) for t in trajectories]),
        to_play=np.concatenate([t.to_play for t in trajectories]),
        plies_left=np.concatenate([np.arange(len(t) - 1, -1, -1, dtype=np.int32) for t in trajectories]),
        plies_ahead=np.concatenate([plies_ahead(t) for t in trajectories]),
        weights=np.concatenate(weights).astype(np.float32),
    )
