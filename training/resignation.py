"""When a player gives a game up, and how often that is wrong: some games are played on all the same, to measure it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.streams import UInt64Array, derive
from training.config import SelfPlayConfig

# Which of a game's random numbers says whether it is played on; those of its plies are small.
_PLAY_ON = 1 << 40

BoolArray = npt.NDArray[np.bool_]


class Resignation:
    """Watches the values of B games.

    Args:
        config: when a player gives up.
        batch_size: B.

    Attributes:
        below: int64 [B, 2], plies in a row that the value has been below the limit, for each seat at its own plies.
        would_resign: int8 [B], the seat that would have resigned first in a game that is played on, -1 before that.
    """

    def __init__(self, config: SelfPlayConfig, batch_size: int) -> None:
        self._config = config
        self.below = np.zeros((batch_size, 2), np.int64)
        self.would_resign = np.full(batch_size, -1, np.int8)

    def start(self, rows: npt.NDArray[np.int64]) -> None:
        """New games begin in some rows."""
        self.below[rows] = 0
        self.would_resign[rows] = -1

    def judge(
        self, root_values: npt.NDArray[np.float32], to_play: npt.NDArray[np.int8], keys: UInt64Array
    ) -> BoolArray:
        """Whether the player to move gives up, in each game.

        Args:
            root_values: float32 [B], for the player to move.
            to_play: int8 [B], the seat to move: a swap exchanges sides, not seats.
            keys: uint64 [B], of the games: some are played on to their end.
        """
        c, rows = self._config, np.arange(len(keys))
        if c.resign_below <= -1:
            return np.zeros(len(keys), np.bool_)
        self.below[rows, to_play] = np.where(root_values < c.resign_below, self.below[rows, to_play] + 1, 0)
        ready = self.below[rows, to_play] >= c.resign_plies
        drawn = derive(keys, np.full(len(keys), _PLAY_ON)) >> np.uint64(11)
        played_on = drawn.astype(np.float64) / 2**53 < c.resign_play_on
        first = ready & played_on & (self.would_resign < 0)
        self.would_resign[first] = to_play[first]
        return ready & ~played_on
