"""The truth about whole endings: games solved backwards, and random games made to be solved.

Each ply finds in the solver's transposition table what the plies behind it have left there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.compiled import kernel
from lifeline.kernels import OVER_BIT, ZERO, load, longest_game, outcome_of, random_action, seat_of, step_state, store
from lifeline.rules import Position, Rules
from lifeline.solver import NO_MOVE, UNKNOWN, WIN, Solver, search
from lifeline.streams import random_below, random_unit

UInt64Array = npt.NDArray[np.uint64]
Int8Array = npt.NDArray[np.int8]

# In won positions of a random ending that is played again a winning move is chosen so often, else any.
_WINNING_SHARE = 0.5
# The table is cleared for each game and each pair of random endings, which takes a millisecond for so many entries.
_MAX_TABLE_BITS = 18


@dataclass(frozen=True)
class Ending:
    """The last plies of a game and what the solver found about them.

    Attributes:
        states: uint64 [T, K], packed states before each ply.
        to_play: int8 [T], the seat to move.
        actions: int16 [T].
        values: int8 [T], +1 where the player to move wins, -1 where not, 0 where it was not found.
        moves: int8 [T, A], +1 where a move wins for the player to move, -1 where it loses, 0 where it was not found,
            NO_MOVE for what is not legal.
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


class BackwardSolver:
    """Solves games from their last ply backwards; what it finds in one depends on no game before it.

    Not to be shared between threads. Nothing ends a call before its nodes are spent, not even Ctrl-C.

    Args:
        rules: what is played.
        max_nodes: positions searched for each ply at most, but for one a move.
    """

    def __init__(self, rules: Rules, max_nodes: int) -> None:
        self.rules = rules
        self._solver = Solver(rules, min(max(10, (8 * max_nodes).bit_length()), _MAX_TABLE_BITS), symmetric=False)
        self._spec = kernels.spec_of(rules)
        self._start = kernels.encode_position(Position.start(rules))
        self._counter = np.array([0, max_nodes], np.int64)
        longest = longest_game(rules)
        self._states = np.zeros((2, longest, len(self._start)), np.uint64)
        self._played = np.zeros((2, longest, 2), np.int16)
        self._values = np.zeros((2, longest), np.int8)
        self._moves = np.zeros((2, longest, rules.num_actions), np.int8)
        self._found = np.zeros((2, 3), np.int64)
        self._stream = np.zeros(1, np.uint64)

    def warm_up(self) -> None:
        """Have the kernels compiled."""
        self.solve(self._start[None])
        self.random_endings(0)

    def solve(self, states: UInt64Array) -> tuple[Int8Array, Int8Array]:
        """The truth about the last plies of a game, up to the first one, from the end, whose value is not found.

        Args:
            states: uint64 [T, K] before each ply.
        Returns:
            int8 [T] and int8 [T, A], `values` and `moves` as in `Ending`; before the plies that were solved all are 0.
        """
        values, moves = np.zeros(len(states), np.int8), np.zeros((len(states), self.rules.num_actions), np.int8)
        self._solver.forget()
        first = solve_backwards(states, len(states), values, moves, self._solver.memory, self._counter, self._spec)
        moves[:first] = 0
        return values, moves

    def random_endings(self, key: int) -> list[Ending]:
        """The end of a random game, and of another one that begins where the first has been solved to.

        The first has no swap and is solved throughout. In won positions of the second, half of the moves are chosen
        among those that win, so that not all it comes to are the results of blunders.

        Args:
            key: all that happens depends on it alone.
        Returns:
            Two endings; none if a game is longer than there is room for.
        """
        self._solver.forget()
        self._stream[0] = key
        random_endings(
            self._start,
            self._stream,
            self._states,
            self._played,
            self._values,
            self._moves,
            self._found,
            self._solver.memory,
            self._counter,
            self._spec,
        )
        return [self._ending(0), self._ending(1)] if self._found[1, 1] else []

    def _ending(self, which: int) -> Ending:
        first, end, outcome = self._found[which].tolist()
        seats, actions = self._played[which, first:end].T
        return Ending(
            states=self._states[which, first:end].copy(),
            to_play=seats.astype(np.int8),
            actions=actions.copy(),
            values=self._values[which, first:end].copy(),
            moves=self._moves[which, first:end].copy(),
            outcome=outcome,
            begun=int(self._found[0, 0]),
        )


@kernel
def solve_ply(state, moves, memory, counter, spec):
    """The value of a running state, and of each move in moves, int8 [A]."""
    for action in range(len(moves)):
        moves[action] = NO_MOVE
    counter[0] = 0
    return search(state, memory, counter, moves, spec)


@kernel
def solve_backwards(states, count, values, moves, memory, counter, spec):
    """Solve a game of so many plies from its end as far as that goes; returns the first ply solved.

    What is in moves before that ply has no meaning; values there stay as they are, but for the 0 of the last tried.
    """
    for ply in range(count - 1, -1, -1):
        values[ply] = solve_ply(states[ply], moves[ply], memory, counter, spec)
        if values[ply] == UNKNOWN:
            return ply + 1
    return 0


@kernel
def random_placement(t, stream, spec):
    """A uniformly random placement of the running state at the front of a work buffer; there always is one."""
    while True:
        action = random_action(t, stream, spec)
        if action < spec.num_cells:
            return action


@kernel
def random_win(moves, stream):
    """A uniformly random one of the moves that win; there must be one."""
    count = 0
    for value in moves:
        count += value == WIN
    pick = random_below(stream, count)
    action = 0
    while moves[action] != WIN or pick > 0:
        pick -= moves[action] == WIN
        action += 1
    return action


@kernel
def random_endings(start, stream, states, played, values, moves, found, memory, counter, spec):
    """See `BackwardSolver.random_endings`.

    Args:
        states, values, moves: [2, L, ...], as in `Ending`, of the whole first game and of the second ending.
        played: int16 [2, L, 2], the seat to move and its action.
        found: int64 [2, 3], of both endings the first ply, the one behind the last, and the outcome; 0 if a game was
            longer than L.
    """
    t = memory.work
    over = 4 * len(spec.words)
    for i in range(2):
        found[i, 0], found[i, 1], found[i, 2] = 0, 0, 0
    load(t, start)
    count = 0
    while t[over] & OVER_BIT == ZERO:
        if count == len(states[0]):
            return
        store(t, states[0, count])
        action = random_placement(t, stream, spec)
        played[0, count, 0], played[0, count, 1] = seat_of(t[over]), action
        step_state(t, action, spec)
        count += 1
    found[0, 1], found[0, 2] = count, outcome_of(t[over])
    # The last ply at least is solved, for it ends the game.
    begun = solve_backwards(states[0], count, values[0], moves[0], memory, counter, spec)
    found[0, 0] = begun
    load(t, states[0, begun])
    count = 0
    while t[over] & OVER_BIT == ZERO:
        if count == len(states[1]):
            return
        state = states[1, count]
        store(t, state)
        value = solve_ply(state, moves[1, count], memory, counter, spec)
        values[1, count] = value
        load(t, state)  # the search has used the buffer
        if value == WIN and random_unit(stream) < _WINNING_SHARE:
            action = random_win(moves[1, count], stream)
        else:
            action = random_placement(t, stream, spec)
        played[1, count, 0], played[1, count, 1] = seat_of(t[over]), action
        step_state(t, action, spec)
        count += 1
    found[1, 1], found[1, 2] = count, outcome_of(t[over])
