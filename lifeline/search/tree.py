"""B search trees of equal size as arrays, and the kernels every way of choosing shares.

All values in a tree are kept from the side of seat 0. A player's view is taken where it is needed, by the seat to move
there: so a second stone by the same player and a swap of sides cannot get a sign wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel
from lifeline.errors import LifelineError
from lifeline.search.evaluator import Env, FloatArray

IntArray32 = npt.NDArray[np.int32]

# The number that stands for a forbidden action among logits.
MINUS_INFINITY = np.float32(-np.inf)
# The least probability of a legal action: 0 is that of an illegal one.
_LEAST_PRIOR = np.float32(1e-30)


class Nodes(NamedTuple):
    """The arrays of B trees of up to N nodes, as kernels take them; node 0 is the root.

    Attributes:
        child: int32 [B, N, A], node reached by an action, -1 if there is none yet; of finished games meaningless.
        prior: float32 [B, N, A], probabilities over the legal actions, 0 elsewhere; of finished games meaningless.
        root_logits: float32 [B, A], the root's logits, minus infinity where illegal, largest 0.
        parent: int32 [B, N]; action: int32 [B, N], the edge a node was reached by; -1 at the root.
        visits: int32 [B, N], simulations through a node, its own evaluation included; 0 while that is awaited.
        virtual: int32 [B, N], simulations under way through a node.
        value_sum: float64 [B, N], sum of the values of the visits, for seat 0; square_sum: float64 [B, N], of squares.
        raw_value: float64 [B, N], the evaluator's value, or the outcome of a decided game, for seat 0.
        seat: int8 [B, N], the seat to move.
        terminal: bool [B, N], the game is over, or its outcome proven: nothing below needs to be looked at.
        num_nodes: int32 [B], nodes in use.
    """

    child: IntArray32
    prior: FloatArray
    root_logits: FloatArray
    parent: IntArray32
    action: IntArray32
    visits: IntArray32
    virtual: IntArray32
    value_sum: npt.NDArray[np.float64]
    square_sum: npt.NDArray[np.float64]
    raw_value: npt.NDArray[np.float64]
    seat: npt.NDArray[np.int8]
    terminal: npt.NDArray[np.bool_]
    num_nodes: IntArray32


class Tree:
    """B trees. Allocated once, used for search after search.

    Args:
        env: a game like those searched.
        num_nodes: N.
        batch: B; None = as many as `env` has.

    Attributes:
        nodes: the arrays.
        states: [B, N, ...], the game's state at each node, opaque.
    """

    def __init__(self, env: Env, num_nodes: int, batch: int | None = None) -> None:
        self._batch = env.batch_size if batch is None else batch
        self._num_actions = env.num_actions
        sample = env.gather(np.zeros(1, np.int64))
        self.states: npt.NDArray[Any] = np.zeros((self._batch, num_nodes, *sample.shape[1:]), sample.dtype)
        self.nodes = self._allocate(num_nodes)
        self._rows = np.arange(self._batch)

    @property
    def shape(self) -> tuple[int, int, int]:
        """B, N and A."""
        batch, num_nodes, num_actions = self.nodes.child.shape
        return batch, num_nodes, num_actions

    def _allocate(self, size: int) -> Nodes:
        batch, actions = self._batch, self._num_actions
        return Nodes(
            child=np.full((batch, size, actions), -1, np.int32),
            prior=np.zeros((batch, size, actions), np.float32),
            root_logits=np.zeros((batch, actions), np.float32),
            parent=np.full((batch, size), -1, np.int32),
            action=np.full((batch, size), -1, np.int32),
            visits=np.zeros((batch, size), np.int32),
            virtual=np.zeros((batch, size), np.int32),
            value_sum=np.zeros((batch, size), np.float64),
            square_sum=np.zeros((batch, size), np.float64),
            raw_value=np.zeros((batch, size), np.float64),
            seat=np.zeros((batch, size), np.int8),
            terminal=np.zeros((batch, size), np.bool_),
            num_nodes=np.zeros(batch, np.int32),
        )

    def reserve(self, more: int) -> None:
        """Make room for so many nodes more in each tree."""
        old = self.nodes.child.shape[1]
        needed = int(self.nodes.num_nodes.max()) + more
        if needed <= old:
            return
        grown = self._allocate(max(needed, 2 * old))
        for name in Nodes._fields:
            before, after = getattr(self.nodes, name), getattr(grown, name)
            if name in ("root_logits", "num_nodes"):  # one a tree, not one a node
                after[...] = before
            else:
                after[:, :old] = before
        states = np.zeros((self._batch, grown.child.shape[1], *self.states.shape[2:]), self.states.dtype)
        states[:, :old] = self.states
        self.states, self.nodes = states, grown

    def plant(self, rows: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin some trees anew, all when None: a root each, whose evaluation is awaited."""
        chosen = np.ones(self._batch, np.bool_) if rows is None else rows
        plant_roots(chosen, self.nodes)

    def follow(self, states: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Make of each tree the part below the node with a given state, for games that went on.

        Args:
            states: [B, ...], where the games are.
        Returns:
            bool [B], False where no evaluated node has that state: such a tree is as it was.
        """
        size = int(self.nodes.num_nodes.max())
        if size == 0:
            return np.zeros(self._batch, np.bool_)
        axes = tuple(range(2, self.states.ndim))
        same = (self.states[:, :size] == states[:, None]).all(axis=axes)
        same &= (np.arange(size) < self.nodes.num_nodes[:, None]) & (self.nodes.visits[:, :size] > 0)
        same &= ~self.nodes.terminal[:, :size]
        found: npt.NDArray[np.bool_] = same.any(axis=1)
        roots = np.where(found, same.argmax(axis=1), 0).astype(np.int32)
        if roots.any():
            moved = np.full((self._batch, size), -1, np.int32)
            source = np.tile(np.arange(size), (self._batch, 1))
            reroot(roots, moved, source, self.nodes)
            self.states[:, :size] = self.states[self._rows[:, None], source]
        return found

    def add(
        self,
        leaf: IntArray32,
        leaves: Env,
        prior_logits: FloatArray,
        values: FloatArray,
        prove: bool = False,
        known: npt.NDArray[np.int8] | None = None,
    ) -> None:
        """Fill in leaves that have been reserved, k of each tree, and back their values up.

        A finished game reached again is only counted again.

        Args:
            leaf: int32 [B k], the node of each leaf; -1 where a row stands for none.
            leaves: B k games, those at the leaves.
            prior_logits: float32 [B k, A]; values: float32 [B k] from the player to move; unused in finished games.
            prove: whether a game counts as decided where its player can win by force among the finished games of the
                tree, or cannot help losing.
            known: int8 [B k], +1 or -1 where the exact value for the player to move is known, else 0.

        Raises:
            LifelineError: the evaluator gave a value or logit that is no number for a running game.
        """
        bad = add_leaves(
            leaf,
            leaves.legal_action_mask,
            leaves.to_play,
            leaves.terminated,
            leaves.outcome,
            np.ascontiguousarray(prior_logits, np.float32),
            np.ascontiguousarray(values, np.float32),
            prove,
            np.zeros(len(leaf), np.int8) if known is None else known,
            self.nodes,
        )
        if bad >= 0:
            raise LifelineError(f"the evaluator gave no usable value or prior for game {bad} of the batch")
        taken = np.flatnonzero(leaf >= 0)
        if len(taken) == self._batch == len(leaf):
            self.states[self._rows, leaf] = leaves.gather()
        else:
            self.states[taken // (len(leaf) // self._batch), leaf[taken]] = leaves.gather(taken)


@kernel
def plant_roots(chosen, nodes):
    """Give each chosen tree a root alone."""
    for b in range(len(chosen)):
        if chosen[b]:
            nodes.num_nodes[b] = 0
            new_node(b, -1, -1, nodes)


@kernel
def new_node(b, parent, action, nodes):
    """Append a node whose evaluation is awaited; returns it."""
    node = nodes.num_nodes[b]
    nodes.num_nodes[b] = node + 1
    nodes.parent[b, node] = parent
    nodes.action[b, node] = action
    if parent >= 0:
        nodes.child[b, parent, action] = node
    nodes.visits[b, node] = 0
    nodes.virtual[b, node] = 0
    nodes.value_sum[b, node] = 0.0
    nodes.square_sum[b, node] = 0.0
    nodes.terminal[b, node] = False
    return node


@kernel
def expand(b, node, row, legal, logits, nodes):
    """Give a node its priors, from a row of logits; returns False where they are unusable."""
    num_actions = logits.shape[1]
    top = -np.inf
    for a in range(num_actions):
        if legal[row, a] and logits[row, a] > top:
            top = logits[row, a]
    # Catches NaN as well: every comparison with it is false.
    if not -np.inf < top < np.inf:
        return False
    total = 0.0
    for a in range(num_actions):
        nodes.child[b, node, a] = -1
        p = np.float32(0.0)
        if legal[row, a]:
            p = max(np.float32(np.exp(logits[row, a] - top)), _LEAST_PRIOR)
        nodes.prior[b, node, a] = p
        total += p
    for a in range(num_actions):
        nodes.prior[b, node, a] /= np.float32(total)
    if node == 0:
        for a in range(num_actions):
            nodes.root_logits[b, a] = logits[row, a] - top if legal[row, a] else MINUS_INFINITY
    return True


@kernel
def add_leaves(leaf, legal, to_play, terminated, outcome, logits, values, prove, known, nodes):
    """The work of `Tree.add`. Returns the first unusable row, or -1."""
    width = len(leaf) // len(nodes.num_nodes)
    for row in range(len(leaf)):
        node, b = leaf[row], row // width
        if node < 0:
            continue
        fresh = nodes.visits[b, node] == 0
        if fresh:
            nodes.seat[b, node] = to_play[row]
            nodes.terminal[b, node] = terminated[row]
            if terminated[row]:
                nodes.raw_value[b, node] = outcome[row]
            elif known[row] != 0 and node > 0:  # a root must be able to choose
                nodes.terminal[b, node] = True
                nodes.raw_value[b, node] = known[row] if to_play[row] == 0 else -known[row]
            else:
                nodes.raw_value[b, node] = values[row] if to_play[row] == 0 else -values[row]
                if not -1.001 <= values[row] <= 1.001 or not expand(b, node, row, legal, logits, nodes):
                    return row
        value = nodes.raw_value[b, node]
        at = node
        while at >= 0:
            if nodes.terminal[b, at]:  # decided, while this leaf was away perhaps
                value = nodes.raw_value[b, at]
            nodes.visits[b, at] += 1
            nodes.value_sum[b, at] += value
            nodes.square_sum[b, at] += value * value
            if nodes.virtual[b, at] > 0:
                nodes.virtual[b, at] -= 1
            at = nodes.parent[b, at]
        if prove and fresh and nodes.terminal[b, node]:
            prove_upwards(b, node, nodes)
    return -1


@kernel
def prove_upwards(b, node, nodes):
    """From a decided node on, mark what is decided above it, the root excepted, and set the record of its values right.

    A player to whom one move wins has won; one whose every move loses has lost.
    """
    num_actions = nodes.child.shape[2]
    parent = nodes.parent[b, node]
    while parent > 0:
        sign = 1.0 if nodes.seat[b, parent] == 0 else -1.0
        value = nodes.raw_value[b, node]
        if value * sign < 0:
            for a in range(num_actions):
                if nodes.prior[b, parent, a] > 0.0:
                    c = nodes.child[b, parent, a]
                    if c < 0 or not nodes.terminal[b, c] or nodes.raw_value[b, c] * sign > 0:
                        return
        visits = nodes.visits[b, parent]
        change = visits * value - nodes.value_sum[b, parent]
        squares = visits - nodes.square_sum[b, parent]
        nodes.terminal[b, parent] = True
        nodes.raw_value[b, parent] = value
        at = parent
        while at >= 0:
            nodes.value_sum[b, at] += change
            nodes.square_sum[b, at] += squares
            at = nodes.parent[b, at]
        node = parent
        parent = nodes.parent[b, node]


@kernel
def reroot(roots, moved, source, nodes):
    """Keep of each tree what lies below a node and bring it to the front; a root of 0 changes nothing.

    Uses moved, int32 [B, M], filled with -1; writes source, int64 [B, M]: which node has come to each place.
    """
    num_actions = nodes.child.shape[2]
    for b in range(len(roots)):
        if roots[b] == 0:
            continue
        count = 0
        for node in range(roots[b], nodes.num_nodes[b]):
            parent = nodes.parent[b, node]
            if node != roots[b] and (parent < 0 or moved[b, parent] < 0 or nodes.visits[b, node] == 0):
                continue
            moved[b, node] = count
            source[b, count] = node
            nodes.parent[b, count] = moved[b, parent] if count > 0 else -1
            nodes.action[b, count] = nodes.action[b, node] if count > 0 else -1
            nodes.visits[b, count] = nodes.visits[b, node]
            nodes.virtual[b, count] = 0
            nodes.value_sum[b, count] = nodes.value_sum[b, node]
            nodes.square_sum[b, count] = nodes.square_sum[b, node]
            nodes.raw_value[b, count] = nodes.raw_value[b, node]
            nodes.seat[b, count] = nodes.seat[b, node]
            nodes.terminal[b, count] = nodes.terminal[b, node]
            for a in range(num_actions):
                nodes.prior[b, count, a] = nodes.prior[b, node, a]
                nodes.child[b, count, a] = -1
            if count > 0:
                nodes.child[b, nodes.parent[b, count], nodes.action[b, count]] = count
            count += 1
        nodes.num_nodes[b] = count
        top = np.float32(0.0)
        for a in range(num_actions):
            top = max(top, nodes.prior[b, 0, a])
        for a in range(num_actions):
            p = nodes.prior[b, 0, a]
            nodes.root_logits[b, a] = np.float32(np.log(p / top)) if p > 0.0 else MINUS_INFINITY


@kernel
def most_visited_lines(rows, actions, lines, lengths, nodes):
    """Follow the most visited children behind an action of a root, for each pair of row and action.

    Writes lines, int32 [R, L], and how far each goes, int32 [R], 1..L. Ties go to the lowest action.
    """
    for i in range(len(rows)):
        b = rows[i]
        lines[i, 0] = actions[i]
        length = 1
        node = nodes.child[b, 0, actions[i]]
        # Finished games have no children, but what other searches left in their rows.
        while node >= 0 and not nodes.terminal[b, node] and length < lines.shape[1]:
            most, best = 0, -1
            for a in range(nodes.child.shape[2]):
                c = nodes.child[b, node, a]
                if c >= 0 and nodes.visits[b, c] > most:
                    most, best = nodes.visits[b, c], a
            if best < 0:
                break
            lines[i, length] = best
            length += 1
            node = nodes.child[b, node, best]
        lengths[i] = length
