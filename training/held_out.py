"""The positions models are graded on, which nothing may teach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel
from lifeline.kernels import ONE, UInt64Array, encode_position, spec_of
from lifeline.rules import Rules
from training.grading import graded, path_of


class HeldOut:
    """The positions models are graded on, in all their symmetric forms: no game begins from them.

    Args:
        rules: whose positions; where there are none to grade on, none are held out.
    """

    def __init__(self, rules: Rules) -> None:
        self._cell_bit = spec_of(rules).cell_bit
        # A sum of one random word for each stone and for the colour to place: equal for equal positions.
        self._weights = np.random.default_rng(0).integers(0, 2**64, size=(2, rules.num_cells + 1), dtype=np.uint64)
        self._sums = np.zeros(0, np.uint64)
        if rules == Rules(rules.base) and path_of(rules.base).exists():
            states = np.array([encode_position(p) for p in graded(rules.base).positions])
            turned = [self._hash(states, [*symmetry, rules.num_cells]) for symmetry in rules.board.symmetries]
            self._sums = np.unique(np.concatenate(turned))

    def _hash(self, states: UInt64Array, order: Sequence[int] | None = None) -> UInt64Array:
        """uint64 [B], the sums of positions; of their forms by a symmetry, if its order of cells is given."""
        weights = self._weights if order is None else np.ascontiguousarray(self._weights[:, order])
        out = np.empty(len(states), np.uint64)
        _sums(states, self._cell_bit, weights, out)
        return out

    def contains(self, states: UInt64Array) -> npt.NDArray[np.bool_]:
        """bool [B], whether models are graded on a position or a symmetric form of it."""
        if not len(self._sums):
            return np.zeros(len(states), np.bool_)
        sums = self._hash(states)
        at = np.searchsorted(self._sums, sums)
        return np.asarray(self._sums[np.minimum(at, len(self._sums) - 1)] == sums)


@kernel
def _sums(states, cell_bit, weights, out):
    words = states.shape[1] // 4
    for b in range(len(states)):
        found = weights[np.int64(states[b, 4 * words] & ONE), len(cell_bit)]
        for cell in range(len(cell_bit)):
            bit = cell_bit[cell]
            for colour in range(2):
                stone = states[b, colour * words + (bit >> 6)] >> np.uint64(bit & 63) & ONE
                found += stone * weights[colour, cell]
        out[b] = found


@lru_cache(maxsize=16)
def held_out(rules: Rules) -> HeldOut:
    """The held-out positions of these rules."""
    return HeldOut(rules)
