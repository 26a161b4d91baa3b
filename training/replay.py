"""What is kept: a ring of samples, of which the newest are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.kernels import spec_of, state_size
from lifeline.rules import Rules
from training.config import LearnerConfig, ReplayConfig
from training.targets import Later, Samples, samples_of
from training.trajectory import Trajectory

# No sample is drawn more than so many times as often as one of weight 1.
_MAX_WEIGHT = 4.0


class ReplayBuffer:
    """The newest samples of a run, of one size of board.

    Args:
        config: capacity and window.
        state_size: words in a packed state.
        num_actions: A.
    """

    def __init__(self, config: ReplayConfig, state_size: int, num_actions: int) -> None:
        self._config = config
        self._arrays: dict[str, npt.NDArray[Any]] = {
            "states": np.zeros((0, state_size), np.uint64),
            "policy_targets": np.zeros((0, num_actions), np.float16),
            "value_targets": np.zeros(0, np.float32),
            "versions": np.zeros(0, np.int64),
            "root_values": np.zeros(0, np.float32),
            "to_play": np.zeros(0, np.int8),
            "plies_left": np.zeros(0, np.int32),
            "plies_ahead": np.zeros(0, np.int32),
            "weights": np.zeros(0, np.float32),
        }
        self.total = 0

    @property
    def window(self) -> int:
        """Samples drawn from now: the newest ones, more of them the more have been made; see `window_of`."""
        return min(window_of(self._config, self.total), self._config.capacity, self.total)

    def add(self, samples: Samples) -> None:
        """Put samples in, in order, over the oldest ones when full."""
        for start in range(0, len(samples), self._config.capacity):
            self._add(samples, start, min(len(samples), start + self._config.capacity))

    def _add(self, samples: Samples, start: int, end: int) -> None:
        room = len(self._arrays["states"])
        needed = min(self._config.capacity, self.total + end - start)
        if needed > room:
            # Grown by doubling: a long run's memory is taken only when it has the samples to fill it.
            self._resize(min(self._config.capacity, max(needed, 2 * room, 4096)))
        at = (self.total + np.arange(end - start)) % self._config.capacity
        for name, array in self._arrays.items():
            array[at] = getattr(samples, name)[start:end]
        self.total += end - start

    def _resize(self, room: int) -> None:
        for name, array in self._arrays.items():
            grown = np.zeros((room, *array.shape[1:]), array.dtype)
            grown[: len(array)] = array
            self._arrays[name] = grown

    def draw(self, count: int, rng: np.random.Generator, horizon: int = 0) -> Samples:
        """Draw samples from the window by their weights, with replacement; the buffer must not be empty.

        Args:
            horizon: plies to look ahead for the auxiliary targets; 0 = not at all.
        """
        numbers = self._numbers(count, rng)
        arrays: dict[str, Any] = {name: a[numbers % self._config.capacity] for name, a in self._arrays.items()}
        samples = Samples(**arrays)
        return replace(samples, later=self._later(samples, numbers, horizon)) if horizon else samples

    def _numbers(self, count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Numbers of drawn samples, int64 [count]; drawn evenly and kept by weight."""
        if self._config.surprise_share == 0:
            return np.asarray(self.total - 1 - rng.integers(0, self.window, size=count))
        kept: list[npt.NDArray[np.int64]] = []
        while (missing := count - sum(map(len, kept))) > 0:
            numbers = self.total - 1 - rng.integers(0, self.window, size=6 * missing)
            accepted = rng.random(len(numbers)) * _MAX_WEIGHT < self._arrays["weights"][numbers % self._config.capacity]
            kept.append(numbers[accepted][:missing])
        return np.concatenate(kept)

    def _later(self, samples: Samples, numbers: npt.NDArray[np.int64], horizon: int) -> Later:
        """How games went on behind drawn samples, up to the next random move: the rest of its game follows a sample."""
        capacity = self._config.capacity
        following = (numbers + (samples.plies_ahead > 0)) % capacity
        replies = np.where(samples.plies_ahead[:, None] > 0, self._arrays["policy_targets"][following], np.float16(0))
        at = (numbers + np.clip(samples.plies_ahead, 0, horizon)) % capacity
        same = self._arrays["to_play"][at] == samples.to_play
        values = (1 + np.where(same, 1, -1) * self._arrays["root_values"][at]) / 2
        return Later(
            replies,
            self._arrays["states"][at],
            np.clip(values, 0, 1).astype(np.float32),
            samples.plies_left,
            samples.plies_ahead >= 0,
        )

    def mean_version(self) -> float:
        """Mean version of the weights that the window's samples were made with; 0 when it is empty."""
        at = np.arange(self.total - self.window, self.total) % self._config.capacity
        return float(self._arrays["versions"][at].mean()) if len(at) else 0.0

    def restart(self, total: int) -> None:
        """Empty the buffer and count on from so many samples made before; the newest of them are to be added next.

        A sample's place hangs on its number alone, so a buffer filled again from disk draws what it would have drawn.
        """
        self.total = total
        self._arrays = {name: array[:0] for name, array in self._arrays.items()}
        self._resize(min(self._config.capacity, total))


class Replay:
    """The samples of a run: a buffer for each size of board, each with a capacity and a window of its own.

    Args:
        config: of each buffer.
        sizes: the rules of each size, with its share of the samples that are drawn.
    """

    def __init__(self, config: ReplayConfig, sizes: Mapping[Rules, float]) -> None:
        self._shares = np.array(list(sizes.values()))
        self._surprise_share = config.surprise_share
        self._buffers = {
            r.num_actions: ReplayBuffer(config, state_size(len(spec_of(r).words)), r.num_actions) for r in sizes
        }

    @property
    def total(self) -> int:
        """Samples ever added."""
        return sum(buffer.total for buffer in self._buffers.values())

    @property
    def totals(self) -> dict[int, int]:
        """The same by size, which is told by the number of actions."""
        return {actions: buffer.total for actions, buffer in self._buffers.items()}

    @property
    def window(self) -> int:
        """Samples drawn from now, of all sizes."""
        return sum(buffer.window for buffer in self._buffers.values())

    def add(self, samples: Samples) -> None:
        """Put samples of one size in."""
        self._buffers[samples.policy_targets.shape[1]].add(samples)

    def draw(self, count: int, rng: np.random.Generator, horizon: int = 0) -> Samples:
        """Draw samples, all of one size; see `ReplayBuffer.draw`. There must be some."""
        filled = [buffer for buffer in self._buffers.values() if buffer.total]
        if len(filled) == 1:
            return filled[0].draw(count, rng, horizon)
        shares = self._shares[[buffer.total > 0 for buffer in self._buffers.values()]]
        return filled[int(rng.choice(len(filled), p=shares / shares.sum()))].draw(count, rng, horizon)

    def mean_version(self) -> float:
        """Mean version of the weights that the windows' samples were made with; 0 when they are empty."""
        sums = sum(buffer.mean_version() * buffer.window for buffer in self._buffers.values())
        return sums / max(1, self.window)

    def refill(self, totals: Mapping[int, int], newest_first: Iterable[Sequence[Trajectory]], c: LearnerConfig) -> None:
        """Fill the buffers again with the newest games of a run, as they were after so many samples of each size.

        Args:
            totals: samples ever made, by number of actions.
            newest_first: finished games in portions of one size, the newest portion first.
            c: how samples are made of them.
        """
        kept: dict[int, list[Samples]] = {actions: [] for actions in self._buffers}
        missing = {}
        for actions, buffer in self._buffers.items():
            buffer.restart(totals.get(actions, 0))  # first as if all were in memory, to learn how large the window is
            missing[actions] = buffer.window
        for games in newest_first:
            if max(missing.values()) <= 0:
                break
            actions = games[0].policy_targets.shape[1]
            if missing[actions] > 0:
                kept[actions].append(samples_of(games, c.root_value_share, self._surprise_share))
                missing[actions] -= len(kept[actions][-1])
        for actions, buffer in self._buffers.items():
            buffer.restart(buffer.total - sum(map(len, kept[actions])))
            for samples in reversed(kept[actions]):
                buffer.add(samples)


def window_of(config: ReplayConfig, total: int) -> int:
    """Samples that are drawn from after so many have been made, as far as there are any.

    A power law that begins as a line of slope `window_growth` behind `min_window`. Source: Wu 2019, appendix C.
    """
    c = config
    if total <= c.min_window:
        return c.min_window
    grown = ((total / c.min_window) ** c.window_exponent - 1) / c.window_exponent
    return int(c.min_window * (1 + c.window_growth * grown))
