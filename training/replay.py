"""What is kept: a ring of samples, of which the newest are drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from training.config import ReplayConfig
from training.targets import Samples


class ReplayBuffer:
    """The newest samples of a run.

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
        }
        self.total = 0

    @property
    def window(self) -> int:
        """Samples drawn from now: the newest share of all ever made, within the bounds of the config."""
        c = self._config
        wanted = max(c.min_window, int(c.window_fraction * self.total))
        return min(wanted, c.capacity, self.total)

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

    def draw(self, count: int, rng: np.random.Generator) -> Samples:
        """Draw samples uniformly from the window, with replacement; the buffer must not be empty."""
        newest_first = rng.integers(0, self.window, size=count)
        at = (self.total - 1 - newest_first) % self._config.capacity
        return Samples(**{name: array[at] for name, array in self._arrays.items()})

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
