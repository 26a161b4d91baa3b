"""Endings with the truth about every ply: of games that were played, and of random ones made for the purpose.

A game is solved from its last ply backwards, each ply finding in the solver's table what those behind it have left
there, up to the first one that takes too many positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.compiled import kernel, popcount
from lifeline.kernels import OTHERS, OVER_BIT, ZERO, load, random_action, seat_of, slot, step_state, store
from lifeline.rules import Position, Rules
from lifeline.solver import UNKNOWN, WIN, Solver, search
from lifeline.streams import random_below, random_unit

UInt64Array = npt.NDArray[np.uint64]
Int8Array = npt.NDArray[np.int8]

NO_MOVE = 2
"""Stands where the value of a move would, for an action that is not legal."""

# Of the moves of a random ending that is played again so many are such as win, where there are any.
_PERFECT = 0.5
# The table is cleared for each game, which takes a millisecond for so many entries.
_MAX_TABLE_BITS = 18


@dataclass(frozen=True)
class Ending:
    """The last plies of a game, the truth about them as far as it was found.

    Attributes:
        states: uint64 [T, K], packed states before each ply.
        to_play: int8 [T], the seat to move.
        actions: int16 [T].
        values: int8 [T], +1 where the player to move wins, -1 where not, 0 where it was not found.
        moves: int8 [T, A], for each move the same, NO_MOVE for other actions.
        outcome: +1 if seat 0 won, -1 if seat 1 did.
        begun: plies played before the first of these.
    """

    states: UInt64Array
    to_play: Int8Array
    actions: npt.NDArray[np.int16]
    values: Int8Array
    moves: Int8Array
    outcome: int
    begun: int


class Endings:
    """Solves the last plies of games; what it finds in one game does not hang on the games before it.

    Args:
        rules: what is played.
        max_nodes: positions searched for each ply at most.
    """

    def __init__(self, rules: Rules, max_nodes: int) -> None:
        self._solver = Solver(rules, min(max(10, (8 * max_nodes).bit_length()), _MAX_TABLE_BITS), symmetric=False)
        self._spec = kernels.spec_of(rules)
        self._start = kernels.encode_position(Position.start(rules))
        self._counter = np.array([0, max_nodes])
        # A game fills a cell or spends a point each turn, but for captures; what is longer is left out.
        longest, actions = 4 * rules.num_cells, rules.num_actions
        self._states = np.zeros((2, longest, len(self._start)), np.uint64)
        self._plies = np.zeros((2, longest, 3), np.int16)
        self._moves = np.zeros((2, longest, actions), np.int8)
        self._row = np.zeros(actions, np.int64)
        self._found = np.zeros((2, 3), np.int64)
        self._stream = np.zeros(1, np.uint64)

    def solve(self, states: UInt64Array) -> tuple[Int8Array, Int8Array]:
        """The truth about the last plies of a game.

        Args:
            states: uint64 [T, K] before each ply.
        Returns:
            int8 [T] and int8 [T, A] as in `Ending`; before the plies that were solved all are 0.
        """
        values, moves = np.zeros(len(states), np.int8), np.zeros((len(states), len(self._row)), np.int8)
        self._solver.forget()
        memory = self._solver.memory
        first = solve_backwards(states, len(states), values, moves, memory, self._counter, self._row, self._spec)
        moves[:first] = UNKNOWN
        return values, moves

    def random(self, key: int) -> list[Ending]:
        """The ending of a random game without swap, and that of another one from where the first has been solved to.

        In the second one half of the moves are such as win, so that neither side has thrown everything away.

        Args:
            key: what happens hangs on it alone.
        Returns:
            Two endings, the first solved throughout; none if nothing could be solved.
        """
        self._solver.forget()
        self._stream[0] = key
        random_endings(
            self._start,
            self._stream,
            self._states,
            self._plies,
            self._moves,
            self._found,
            self._solver.memory,
            self._counter,
            self._row,
            self._spec,
        )
        if (self._found[:, 0] >= self._found[:, 1]).any():
            return []
        return [self._ending(0), self._ending(1)]

    def _ending(self, which: int) -> Ending:
        first, end, outcome = self._found[which].tolist()
        seats, actions, values = self._plies[which, first:end].T
        return Ending(
            states=self._states[which, first:end].copy(),
            to_play=seats.astype(np.int8),
            actions=actions.copy(),
            values=values.astype(np.int8),
            moves=self._moves[which, first:end].copy(),
            outcome=outcome,
            begun=int(self._found[0, 0]),
        )


@kernel
def solve_ply(state, values, moves, ply, memory, counter, row, spec):
    """Write what is found of a running state to values[ply] and moves[ply]; returns the value."""
    for action in range(len(row)):
        row[action] = NO_MOVE
    counter[0] = 0
    value = search(state, memory, counter, row, spec)
    values[ply] = value
    for action in range(len(row)):
        moves[ply, action] = row[action]
    return value


@kernel
def solve_backwards(states, count, values, moves, memory, counter, row, spec):
    """Solve the plies of a game from behind as far as that goes; returns the first one solved, `count` if none is.

    What is found of the one before it is written as well, but for its value it is incomplete.
    """
    for ply in range(count - 1, -1, -1):
        if solve_ply(states[ply], values, moves, ply, memory, counter, row, spec) == UNKNOWN:
            return ply + 1
    return 0


@kernel
def random_placement(t, stream, spec):
    """A uniformly random placement of the state at the front of a work buffer; a point of komi if there is none."""
    others = slot(OTHERS, spec)
    while True:
        action = random_action(t, stream, spec)
        if action < spec.num_cells:
            return action
        cells = 0
        for i in range(len(spec.words)):
            cells += np.int64(popcount(t[others + i]))
        if cells == 0:
            return action


@kernel
def random_win(row, stream):
    """A uniformly random one of the moves that win; there must be one."""
    count = 0
    for value in row:
        count += value == WIN
    pick = random_below(stream, count)
    for action in range(len(row)):
        if row[action] == WIN:
            if pick == 0:
                return action
            pick -= 1
    return -1


@kernel
def random_endings(start, stream, states, plies, moves, found, memory, counter, row, spec):
    """See `Endings.random`.

    Args:
        states: uint64 [2, L, K]; a game of more than L plies counts as unsolved.
        plies: int16 [2, L, 3]: seat, action and value.
        moves: int8 [2, L, A].
        found: int64 [2, 3], of both endings the first ply, one more than the last, and the outcome.
    """
    t = memory.work
    over = 4 * len(spec.words)
    for i in range(2):
        found[i, 0], found[i, 1], found[i, 2] = 0, 0, 0
    load(t, start)
    count = 0
    while t[over] & OVER_BIT == ZERO:
        if count == len(plies[0]):
            return
        store(t, states[0, count])
        action = random_placement(t, stream, spec)
        plies[0, count, 0], plies[0, count, 1] = seat_of(t[over]), action
        step_state(t, action, spec)
        count += 1
    found[0, 2] = 2 * seat_of(t[over]) - 1  # who should move then has lost
    begun = solve_backwards(states[0], count, plies[0, :, 2], moves[0], memory, counter, row, spec)
    found[0, 0], found[0, 1] = begun, count
    if begun == count:
        return
    load(t, states[0, begun])
    count = 0
    while t[over] & OVER_BIT == ZERO:
        if count == len(plies[1]):
            return
        state = states[1, count]
        store(t, state)
        value = solve_ply(state, plies[1, :, 2], moves[1], count, memory, counter, row, spec)
        load(t, state)  # the search has used the buffer
        if value == WIN and random_unit(stream) < _PERFECT:
            action = random_win(row, stream)
        else:
            action = random_placement(t, stream, spec)
        plies[1, count, 0], plies[1, count, 1] = seat_of(t[over]), action
        step_state(t, action, spec)
        count += 1
    found[1, 1], found[1, 2] = count, 2 * seat_of(t[over]) - 1
