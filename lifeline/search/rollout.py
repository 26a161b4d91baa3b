"""UCT with uniformly random rollouts, compiled: the baseline player.

The one search that knows the game: a rollout is worth having only at the speed of the kernels.
Source: Kocsis and Szepesvari 2006 (UCT); rewards in [0, 1].
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.compiled import kernel, lowest_bit
from lifeline.errors import ConfigError
from lifeline.kernels import (
    ONE,
    OTHERS,
    OVER_BIT,
    ZERO,
    legal_cells,
    load,
    may_spend_komi,
    may_swap,
    outcome_of,
    seat_of,
    slot,
    step_state,
)
from lifeline.playouts import new_field, play_out
from lifeline.rules import Rules
from lifeline.streams import random_below

# A path longer than any game.
_MAX_PLIES = 4096


class RolloutSearch:
    """Searches single positions. Not to be shared between threads: it owns its work memory.

    Args:
        rules: what is played.
        num_rollouts: rollouts for each move, at least 1.
        exploration: constant of UCB1, >= 0.

    Raises:
        ConfigError: num_rollouts below 1.
    """

    def __init__(self, rules: Rules, num_rollouts: int, exploration: float = 1.0) -> None:
        if num_rollouts < 1:
            raise ConfigError(f"a rollout player needs at least 1 rollout, not {num_rollouts}")
        self._spec = kernels.spec_of(rules)
        self._exploration = exploration
        self._num_rollouts = num_rollouts
        # Each rollout makes the children of one node at most.
        most = num_rollouts * rules.num_actions + 1
        self._first_child = np.zeros(most, np.int32)
        self._num_children = np.zeros(most, np.int32)
        self._action = np.zeros(most, np.int32)
        self._visits = np.zeros(most, np.int32)
        self._wins = np.zeros(most, np.float64)
        self._path = np.zeros(_MAX_PLIES, np.int32)
        self._work = np.zeros(kernels.work_size(len(self._spec.words)), np.uint64)
        self._field = new_field(rules)

    def choose(self, state: npt.NDArray[np.uint64], key: np.uint64) -> int:
        """The most visited action at a running state; ties go to the one listed first."""
        return self.search(state, key)[0]

    def search(self, state: npt.NDArray[np.uint64], key: np.uint64) -> tuple[int, float]:
        """The same action, and the mean result of its rollouts in [-1, 1] for the player to move."""
        best = uct(
            state,
            self._num_rollouts,
            self._exploration,
            np.array([key], np.uint64),
            self._first_child,
            self._num_children,
            self._action,
            self._visits,
            self._wins,
            self._path,
            self._work,
            self._field,
            self._spec,
        )
        share = self._wins[best] / self._visits[best]
        seat = seat_of(state[4 * len(self._spec.words)])
        return int(self._action[best]), float(2 * share - 1) * (1 if seat == 0 else -1)


@kernel
def make_children(t, node, num_nodes, first_child, num_children, action, visits, wins, spec):
    """Append a node for each legal action of the state in the work buffer; returns the new number of nodes."""
    num_words = len(spec.words)
    others = slot(OTHERS, spec)
    first_child[node] = num_nodes
    legal_cells(t, others, spec)
    for i in range(num_words):
        word = t[others + i]
        while word != ZERO:
            action[num_nodes] = spec.bit_cell[64 * i + np.int64(lowest_bit(word))]
            word &= word - ONE
            num_nodes += 1
    meta = t[4 * num_words]
    if may_swap(meta, spec):
        action[num_nodes] = spec.num_cells
        num_nodes += 1
    if may_spend_komi(meta, spec):
        action[num_nodes] = spec.num_cells + 1
        num_nodes += 1
    num_children[node] = num_nodes - first_child[node]
    for child in range(first_child[node], num_nodes):
        num_children[child] = 0
        visits[child] = 0
        wins[child] = 0.0
    return num_nodes


@kernel
def best_child(node, seat, exploration, first_child, num_children, visits, wins):
    """The child with the greatest upper bound for the seat to move; an unvisited one first."""
    best, best_score = -1, -np.inf
    log_visits = np.log(visits[node])
    for child in range(first_child[node], first_child[node] + num_children[node]):
        n = visits[child]
        if n == 0:
            return child
        won = wins[child] if seat == 0 else n - wins[child]
        score = won / n + exploration * np.sqrt(log_visits / n)
        if score > best_score:
            best, best_score = child, score
    return best


@kernel
def uct(
    state, num_rollouts, exploration, stream, first_child, num_children, action, visits, wins, path, t, field, spec
):
    """The node of the action that `RolloutSearch` chooses. `wins` counts the wins of seat 0 through a node."""
    over = 4 * len(spec.words)
    num_children[0] = 0
    visits[0] = 0
    wins[0] = 0.0
    load(t, state)
    num_nodes = make_children(t, 0, 1, first_child, num_children, action, visits, wins, spec)
    for _ in range(num_rollouts):
        load(t, state)
        node, depth = 0, 0
        path[0] = 0
        while t[over] & OVER_BIT == ZERO:
            if num_children[node] == 0:
                if visits[node] == 0:
                    break
                num_nodes = make_children(t, node, num_nodes, first_child, num_children, action, visits, wins, spec)
                # The order of untried children is that of the cells; begin at a random one.
                node = first_child[node] + random_below(stream, num_children[node])
            else:
                node = best_child(node, seat_of(t[over]), exploration, first_child, num_children, visits, wins)
            step_state(t, action[node], spec)
            depth += 1
            path[depth] = node
        play_out(t, stream, field, spec)
        won = 1.0 if outcome_of(t[over]) > 0 else 0.0
        for i in range(depth + 1):
            visits[path[i]] += 1
            wins[path[i]] += won
    best = first_child[0]
    for child in range(first_child[0], first_child[0] + num_children[0]):
        if visits[child] > visits[best]:
            best = child
    return best
