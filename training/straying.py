"""Games that stray: up to a random moment each move is, half of the time, random, and positions of all kinds come up.

Such games cost no more than others, for every ply is searched and taught. What came of a game says nothing about the
plies before its last random move: those are taught the search's value alone, or the solver's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel
from lifeline.rules import Rules
from lifeline.streams import UInt64Array, derive, random_below, random_unit

_IntArray = npt.NDArray[np.int64]

# Of the moves of a straying game so many are random, as long as it strays.
_RANDOM = 0.5
# Beyond the cells, plies up to which a game may stray.
_BEYOND = 5
# Counters of the streams used here, far from those of the plies.
_BEGIN, _MOVE = 1 << 42, 1 << 43


class Straying:
    """Says which games stray, how long, and where to. All of it hangs on the games' keys.

    Args:
        rules: what is played.
        share: of the games.
    """

    def __init__(self, rules: Rules, share: float) -> None:
        self._num_cells, self._share = rules.num_cells, share

    def until(self, keys: UInt64Array) -> _IntArray:
        """The ply of each game from which on it no longer strays, 0 if it never does: int64 [B]."""
        out = np.zeros(len(keys), np.int64)
        if self._share > 0:
            _draw_ends(derive(keys, np.full(len(keys), _BEGIN)), self._share, self._num_cells + _BEYOND, _stream(), out)
        return out

    def moves(
        self, keys: UInt64Array, plies: _IntArray, until: _IntArray, mask: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """A random placement for each game that strays now, -1 for the others: int64 [B].

        Args:
            keys: uint64 [B], of the games.
            plies: int64 [B], played in each so far.
            until: of `until`.
            mask: bool [B, A], legal actions.
        """
        out = np.full(len(keys), -1, np.int64)
        rows = np.flatnonzero(plies < until)
        if len(rows):
            drawn = np.full(len(rows), -1, np.int64)
            _draw_moves(derive(keys[rows], _MOVE + plies[rows]), mask[rows, : self._num_cells], _stream(), drawn)
            out[rows] = drawn
        return out


def _stream() -> UInt64Array:
    return np.empty(1, np.uint64)


@kernel
def _draw_ends(keys, share, bound, stream, out):
    for b in range(len(keys)):
        stream[0] = keys[b]
        if random_unit(stream) < share:
            out[b] = random_below(stream, bound)


@kernel
def _draw_moves(keys, mask, stream, out):
    for b in range(len(keys)):
        stream[0] = keys[b]
        if random_unit(stream) >= _RANDOM:
            continue
        count = 0
        for cell in range(mask.shape[1]):
            count += mask[b, cell]
        if count == 0:
            continue
        left = random_below(stream, count)
        for cell in range(mask.shape[1]):
            if mask[b, cell]:
                if left == 0:
                    out[b] = cell
                    break
                left -= 1
