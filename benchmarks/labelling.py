"""Random games by plain labelling: the peer that the engine's speed is measured against, in the same run.

It does what one would write first: a number for each cell, and all groups and regions labelled anew by breadth-first
search twice a turn, to find the dead enemies and then one's own. Written with care, but without any of the shortcuts
of lifeline/kernels.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lifeline import Rules
from lifeline.compiled import kernel
from lifeline.streams import random_below

EMPTY, BLACK, WHITE = 0, 1, 2


class Plain(NamedTuple):
    """A board and the labels of its components.

    Attributes:
        neighbors: int64 [N, 6], -1 off the board.
        board: int64 [N]; labels: int64 [N], the component of each cell.
        queue: int64 [N]; legal: int64 [N], cells to place on.
        first, several: int64 [N, 3], by region and colour: the first group that touches it, whether others do.
        alive: int64 [N], of each group.
    """

    neighbors: npt.NDArray[np.int64]
    board: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    queue: npt.NDArray[np.int64]
    legal: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    several: npt.NDArray[np.int64]
    alive: npt.NDArray[np.int64]


def plain_board(rules: Rules) -> Plain:
    """Memory for one game."""
    n = rules.num_cells
    return Plain(
        rules.board.ring,
        *(np.zeros(n, np.int64) for _ in range(4)),
        *np.zeros((2, n, 3), np.int64),
        np.zeros(n, np.int64),
    )


@kernel
def label(p):
    """Label all components, and say of each region which groups touch it and of each group whether it is alive."""
    cells = len(p.board)
    for cell in range(cells):
        p.labels[cell] = -1
    for start in range(cells):
        if p.labels[start] >= 0:
            continue
        p.labels[start] = start
        p.alive[start] = 0
        for colour in range(1, 3):
            p.first[start, colour] = -1
            p.several[start, colour] = 0
        p.queue[0] = start
        head, tail = 0, 1
        while head < tail:
            here = p.queue[head]
            head += 1
            for k in range(6):
                other = p.neighbors[here, k]
                if other >= 0 and p.labels[other] < 0 and p.board[other] == p.board[here]:
                    p.labels[other] = start
                    p.queue[tail] = other
                    tail += 1
    for cell in range(cells):
        if p.board[cell] != EMPTY:
            continue
        region = p.labels[cell]
        for k in range(6):
            other = p.neighbors[cell, k]
            if other >= 0 and p.board[other] != EMPTY:
                colour = p.board[other]
                if p.first[region, colour] < 0:
                    p.first[region, colour] = p.labels[other]
                elif p.first[region, colour] != p.labels[other]:
                    p.several[region, colour] = 1
    for cell in range(cells):
        if p.board[cell] != EMPTY:
            continue
        for k in range(6):
            other = p.neighbors[cell, k]
            if other >= 0 and p.board[other] != EMPTY and p.several[p.labels[cell], p.board[other]] != 0:
                p.alive[p.labels[other]] = 1


@kernel
def remove_dead(p, colour):
    """Take the dead groups of a colour off, by the labels; returns whether there were any."""
    removed = False
    for cell in range(len(p.board)):
        if p.board[cell] == colour and p.alive[p.labels[cell]] == 0:
            p.board[cell] = EMPTY
            removed = True
    return removed


@kernel
def play_plainly(p, stream):
    """One random game of strong pie, the swap left out as it changes no board; returns its plies."""
    cells = len(p.board)
    for cell in range(cells):
        p.board[cell] = EMPTY
    plies, turn = 0, 0
    while True:
        mover = BLACK if turn % 2 == 0 else WHITE
        enemy = WHITE if turn % 2 == 0 else BLACK
        for stone in range(2 if turn < 2 else 1):
            count = 0
            for cell in range(cells):
                if p.board[cell] != EMPTY:
                    continue
                if turn < 2:
                    legal = True
                    for k in range(6):
                        other = p.neighbors[cell, k]
                        if stone == 1 and other >= 0 and p.board[other] == mover:
                            legal = False
                else:
                    legal = p.first[p.labels[cell], mover] >= 0
                if legal:
                    p.legal[count] = cell
                    count += 1
            if count == 0:
                return plies
            p.board[p.legal[random_below(stream, count)]] = mover
            plies += 1
        label(p)
        remove_dead(p, enemy)
        label(p)
        if remove_dead(p, mover):
            label(p)
        turn += 1


@kernel
def play_plain_games(p, games, stream):
    """So many of them; returns the plies in all."""
    plies = 0
    for _ in range(games):
        plies += play_plainly(p, stream)
    return plies
