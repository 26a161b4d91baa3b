"""A game that is not Lifeline, with what makes signs go wrong: two plies in a row by one player, and a swap of sides.

A pile of counters. The first player's turn is two plies; the second player may then swap seats once; from then on each
turn is one ply. A ply takes 1, 2 or 3 counters; who takes the last one wins.
"""

from functools import cache

import numpy as np

TAKES = 3
SWAP = 3


@cache
def moves(pile, phase):
    """Legal actions; phase 0, 1: the first player's two plies, 2: swap open, 3: the rest."""
    takes = [a for a in range(TAKES) if a + 1 <= pile]
    return (*takes, SWAP) if phase == 2 and pile else tuple(takes)


def play(pile, phase, seat, action):
    """The next (pile, phase, seat to move)."""
    if action == SWAP:
        return pile, 3, 1 - seat
    return pile - action - 1, min(3, phase + 1), seat if phase == 0 else 1 - seat


@cache
def minimax(pile, phase):
    """Value for the player to move; an empty pile was emptied by the player before."""
    best = -1
    for action in moves(pile, phase):
        after, next_phase, seat = play(pile, phase, 0, action)
        if after == 0 and action != SWAP:
            return 1
        value = minimax(after, next_phase)
        best = max(best, value if seat == 0 else -value)
    return best


class ToyEnv:
    """The interface of `BatchEnv` over rows (pile, phase, seat, winner + 1)."""

    num_actions = 4
    num_global_actions = 1
    grid_shape = (1, 3)

    def __init__(self, batch_size, pile=9):
        self.batch_size = batch_size
        self._rows = np.tile(np.array([pile, 0, 0, 0]), (batch_size, 1))

    action_to_grid = np.array([0, 1, 2, -1])

    @property
    def legal_action_mask(self):
        mask = np.zeros((self.batch_size, 4), bool)
        for row, (pile, phase, _, won) in zip(mask, self._rows, strict=True):
            if not won:
                row[list(moves(int(pile), int(phase)))] = True
        return mask

    @property
    def to_play(self):
        return self._rows[:, 2].astype(np.int8)

    @property
    def terminated(self):
        return self._rows[:, 3] > 0

    @property
    def outcome(self):
        return np.select([self._rows[:, 3] == 1, self._rows[:, 3] == 2], [1, -1], 0).astype(np.int8)

    @property
    def observation(self):
        return self._rows[:, None, None, :3].astype(np.float32)

    def step(self, actions):
        for row, action in zip(self._rows, actions, strict=True):
            if row[3]:
                continue
            mover = row[2]
            assert action in moves(int(row[0]), int(row[1]))
            row[:3] = play(*(int(x) for x in row[:3]), int(action))
            if row[0] == 0:
                row[3] = mover + 1

    def gather(self, rows=None):
        return self._rows.copy() if rows is None else self._rows[rows]

    def scatter(self, rows, states):
        self._rows[slice(None) if rows is None else rows] = states


class ToyMinimax:
    """An exact evaluator of the toy game."""

    def evaluate(self, leaves):
        values = np.array([minimax(int(p), int(f)) if p else 0 for p, f, _, _ in leaves.gather()], np.float32)
        return np.zeros((leaves.batch_size, 4), np.float32), values
