"""B search trees of equal size as arrays, and the kernels every way of choosing shares.

All values in a tree are kept from the side of seat 0. A player's view is taken where it is needed, by the seat to move
there: so a second stone by the same player and a swap of sides cannot get a sign wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel
from lifeline.errors import LifelineError
from lifeline.search.evaluator import Env, FloatArray

# The number that stands for a forbidden action among logits.
MINUS_INFINITY = np.float32(-np.inf)


class Tree:
    """Arrays of B trees of up to N nodes; node 0 is the root. Allocated once, used for search after search.

    Attributes:
        states: [B, N, ...], the game's state at each node, opaque.
        child: int32 [B, N, A], node reached by an action, -1 if there is none yet.
        prior: float32 [B, N, A], probabilities over the legal actions, 0 elsewhere.
        root_logits: float32 [B, A], the root's logits, minus infinity where illegal, largest 0.
        parent: int32 [B, N]; action: int32 [B, N], the edge a node was reached by; -1 at the root.
        visits: int32 [B, N], simulations that went through a node, its own evaluation included.
        value_sum: float64 [B, N], sum of the values of those, for seat 0.
        raw_value: float64 [B, N], the evaluator's value, or the outcome of a finished game, for seat 0.
        seat: int8 [B, N], the seat to move.
        terminal: bool [B, N], the game is over.
        num_nodes: int32 [B], nodes in use.
    """

    def __init__(self, env: Env, num_nodes: int) -> None:
        batch, actions, sample = env.batch_size, env.num_actions, env.gather(np.zeros(1, np.int64))
        self.shape = (batch, num_nodes, actions)
        self.states: npt.NDArray[Any] = np.zeros((batch, num_nodes, *sample.shape[1:]), sample.dtype)
        self.child = np.full(self.shape, -1, np.int32)
        self.prior = np.zeros(self.shape, np.float32)
        self.root_logits = np.zeros((batch, actions), np.float32)
        self.parent = np.full((batch, num_nodes), -1, np.int32)
        self.action = np.full((batch, num_nodes), -1, np.int32)
        self.visits = np.zeros((batch, num_nodes), np.int32)
        self.value_sum = np.zeros((batch, num_nodes), np.float64)
        self.raw_value = np.zeros((batch, num_nodes), np.float64)
        self.seat = np.zeros((batch, num_nodes), np.int8)
        self.terminal = np.zeros((batch, num_nodes), np.bool_)
        self.num_nodes = np.zeros(batch, np.int32)
        self.rows = np.arange(batch)

    def clear(self) -> None:
        """Forget all nodes."""
        self.num_nodes.fill(0)
        self.parent[:, 0] = self.action[:, 0] = -1

    def add(
        self,
        parents: npt.NDArray[np.int32],
        actions: npt.NDArray[np.int32],
        leaves: Env,
        prior_logits: FloatArray,
        values: FloatArray,
    ) -> None:
        """Add one leaf to each tree and back its value up; a finished game reached again is only counted again.

        Args:
            parents: int32 [B], the node each leaf hangs on; ignored in empty trees, which get their root.
            actions: int32 [B], the action that led to it; -1 where the parent itself is the (finished) leaf.
            leaves: the games at the leaves.
            prior_logits: float32 [B, A]; values: float32 [B] from the player to move; unused in finished games.

        Raises:
            LifelineError: the evaluator gave a value or logit that is no number for a running game.
        """
        nodes = np.empty(len(parents), np.int32)
        bad = add_leaves(
            parents,
            actions,
            nodes,
            leaves.legal_action_mask,
            leaves.to_play,
            leaves.terminated,
            leaves.outcome,
            np.ascontiguousarray(prior_logits, np.float32),
            np.ascontiguousarray(values, np.float32),
            self.child,
            self.prior,
            self.root_logits,
            self.parent,
            self.action,
            self.visits,
            self.value_sum,
            self.raw_value,
            self.seat,
            self.terminal,
            self.num_nodes,
        )
        if bad >= 0:
            raise LifelineError(f"the evaluator gave no usable value or prior for game {bad} of the batch")
        self.states[self.rows, nodes] = leaves.gather()


@kernel
def add_leaves(
    parents,
    actions,
    nodes,
    legal,
    to_play,
    terminated,
    outcome,
    logits,
    values,
    child,
    prior,
    root_logits,
    parent,
    action,
    visits,
    value_sum,
    raw_value,
    seat,
    terminal,
    num_nodes,
):
    """The work of `Tree.add`; writes the node of each leaf into `nodes`. Returns the first unusable row, or -1."""
    num_actions = logits.shape[1]
    for b in range(len(parents)):
        if num_nodes[b] > 0 and actions[b] < 0:
            node = parents[b]
        else:
            node = num_nodes[b]
            num_nodes[b] += 1
            if node > 0:
                parent[b, node] = parents[b]
                action[b, node] = actions[b]
                child[b, parents[b], actions[b]] = node
            visits[b, node] = 0
            value_sum[b, node] = 0.0
            seat[b, node] = to_play[b]
            terminal[b, node] = terminated[b]
            if terminated[b]:
                raw_value[b, node] = outcome[b]
            else:
                raw_value[b, node] = values[b] if to_play[b] == 0 else -values[b]
                top = -np.inf
                for a in range(num_actions):
                    if legal[b, a] and logits[b, a] > top:
                        top = logits[b, a]
                # Catches NaN as well: every comparison with it is false.
                if not (-1.001 <= values[b] <= 1.001 and -np.inf < top < np.inf):
                    return b
                total = 0.0
                for a in range(num_actions):
                    child[b, node, a] = -1
                    p = np.float32(np.exp(logits[b, a] - top)) if legal[b, a] else np.float32(0.0)
                    prior[b, node, a] = p
                    total += p
                for a in range(num_actions):
                    prior[b, node, a] /= np.float32(total)
                if node == 0:
                    for a in range(num_actions):
                        root_logits[b, a] = logits[b, a] - top if legal[b, a] else MINUS_INFINITY
        nodes[b] = node
        value = raw_value[b, node]
        while node >= 0:
            visits[b, node] += 1
            value_sum[b, node] += value
            node = parent[b, node]
    return -1
