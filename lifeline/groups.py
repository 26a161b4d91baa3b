"""The groups and empty regions of a board: which stones live, and through which region.

A group lives by paths of empty cells to another group of its colour, and a path of empty cells never leaves its
region. So a group is alive exactly when some region beside it is also beside another group of its colour.
"""

from __future__ import annotations

from dataclasses import dataclass

from lifeline.board import Board
from lifeline.rules import EMPTY, STONES, Stones, groups


@dataclass(frozen=True)
class Group:
    """A maximal connected set of stones of one colour.

    Attributes:
        colour: 'b' or 'w'.
        cells: ascending.
        regions: the empty regions it touches, ascending indices in `Shape.regions`.
        lifelines: those of them that touch another group of its colour too. One alone is what the group hangs on.
    """

    colour: str
    cells: tuple[int, ...]
    regions: tuple[int, ...]
    lifelines: tuple[int, ...]

    @property
    def alive(self) -> bool:
        """Whether empty cells join it to another group of its colour.

        During an opening that removes nothing a group may stand without being alive.
        """
        return bool(self.lifelines)


@dataclass(frozen=True)
class Region:
    """A maximal connected set of empty cells.

    Attributes:
        cells: ascending.
        colours: the colours of the stones it touches, black first: '', 'b', 'w' or 'bw'.
    """

    cells: tuple[int, ...]
    colours: str


@dataclass(frozen=True)
class Shape:
    """All groups and regions of a board, each by lowest cell, groups of both colours in one order."""

    groups: tuple[Group, ...]
    regions: tuple[Region, ...]


def shape_of(geometry: Board, stones: Stones) -> Shape:
    """Find the groups and regions of a board.

    Args:
        geometry: the board.
        stones: one of '.', 'b', 'w' for each cell.
    """
    empty = groups(geometry, stones, EMPTY)
    region_of = {cell: index for index, cells in enumerate(empty) for cell in cells}
    beside = [
        (colour, cells, {region_of[c] for s in cells for c in geometry.neighbors[s] if c in region_of})
        for colour in STONES
        for cells in groups(geometry, stones, colour)
    ]
    # How many groups of a colour stand beside a region: two or more keep each other alive.
    beside_count = {
        (colour, index): sum(colour == other and index in regions for other, _, regions in beside)
        for colour in STONES
        for index in range(len(empty))
    }
    found = []
    for colour, cells, regions in beside:
        lifelines = tuple(sorted(index for index in regions if beside_count[colour, index] > 1))
        found.append(Group(colour, tuple(sorted(cells)), tuple(sorted(regions)), lifelines))
    open_cells = [
        Region(tuple(sorted(cells)), "".join(colour for colour in STONES if beside_count[colour, index]))
        for index, cells in enumerate(empty)
    ]
    return Shape(tuple(sorted(found, key=lambda group: group.cells[0])), tuple(open_cells))
