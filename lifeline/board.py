"""Hexhex geometry: cells, neighbours, labels, symmetries, and the grid a network sees.

A board of base n has n cells a side and 3n(n-1)+1 cells. Cells are numbered row by row from the top, left to right.
In axial coordinates (q, z) row z runs from -(n-1) at the top to n-1, and q from max(-(n-1), -(n-1)-z).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from lifeline.errors import NotationError, RulesError

MIN_BASE = 3
MAX_BASE = 12

# The six neighbours in cyclic order, so that consecutive entries are neighbours of each other.
DIRECTIONS: tuple[tuple[int, int], ...] = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Board:
    """The geometry of one board size. Use `board(base)`, which keeps one object a size.

    Attributes:
        base: cells a side, 3..12.
    """

    base: int

    @cached_property
    def coords(self) -> tuple[tuple[int, int], ...]:
        """Axial coordinates (q, z) of each cell, in cell order."""
        r = self.base - 1
        return tuple((q, z) for z in range(-r, r + 1) for q in range(max(-r, -r - z), min(r, r - z) + 1))

    @cached_property
    def num_cells(self) -> int:
        """N = 3n(n-1)+1."""
        return 3 * self.base * (self.base - 1) + 1

    @cached_property
    def index_of(self) -> dict[tuple[int, int], int]:
        """Cell index of each axial coordinate."""
        return {c: i for i, c in enumerate(self.coords)}

    @cached_property
    def ring(self) -> IntArray:
        """int64 [N, 6]: the neighbours of each cell in cyclic order, -1 off the board."""
        rows = [[self.index_of.get((q + dq, z + dz), -1) for dq, dz in DIRECTIONS] for q, z in self.coords]
        return np.array(rows, dtype=np.int64)

    @cached_property
    def neighbors(self) -> tuple[tuple[int, ...], ...]:
        """The neighbours of each cell, on the board only."""
        return tuple(tuple(int(c) for c in row if c >= 0) for row in self.ring)

    @cached_property
    def rows(self) -> tuple[range, ...]:
        """The cells of each row, top row first."""
        n, out, start = self.base, [], 0
        for z in range(-(n - 1), n):
            length = 2 * n - 1 - abs(z)
            out.append(range(start, start + length))
            start += length
        return tuple(out)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each cell: a letter for the row counted from the bottom, a 1-based place in the row."""
        last = len(self.rows) - 1
        return tuple(f"{chr(ord('a') + last - i)}{k + 1}" for i, row in enumerate(self.rows) for k in range(len(row)))

    @cached_property
    def _cell_of_label(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def cell(self, label: str) -> int:
        """Cell index of a label, read without regard to case.

        Raises:
            NotationError: the board has no such cell.
        """
        # Some letters beyond ASCII have one of ours as their lower case.
        found = self._cell_of_label.get(label.strip().lower()) if label.isascii() else None
        if found is None:
            raise NotationError(f"no cell {label.strip()[:20]!r} on a board of base {self.base}")
        return found

    @cached_property
    def grid_shape(self) -> tuple[int, int]:
        """(H, W) of the axial grid, both 2n-1."""
        return (2 * self.base - 1, 2 * self.base - 1)

    @cached_property
    def cell_to_grid(self) -> IntArray:
        """int64 [N]: index of each cell in the flattened H x W grid (row z, column q)."""
        r, width = self.base - 1, 2 * self.base - 1
        return np.array([(z + r) * width + (q + r) for q, z in self.coords], dtype=np.int64)

    @cached_property
    def symmetries(self) -> IntArray:
        """int64 [12, N]: the six turns, then the six mirrored ones; entry [s, c] is where symmetry s takes cell c."""
        perms = []
        for mirror in (False, True):
            for turns in range(6):
                row = []
                for q, z in self.coords:
                    x, y = (z, q) if mirror else (q, z)
                    for _ in range(turns):
                        x, y = -y, x + y
                    row.append(self.index_of[(x, y)])
                perms.append(row)
        return np.array(perms, dtype=np.int64)


@cache
def board(base: int) -> Board:
    """The geometry of a board of `base` cells a side.

    Raises:
        RulesError: base outside 3..12.
    """
    if isinstance(base, bool) or not isinstance(base, int) or not MIN_BASE <= base <= MAX_BASE:
        raise RulesError(f"base must be a whole number from {MIN_BASE} to {MAX_BASE}, not {base!r}")
    return Board(base)
