"""Gumbel search: sequential halving with Gumbel noise at the root, completed values below.

Source: Danihelka, Guez, Schrittwieser, Silver: Policy improvement by planning with Gumbel, ICLR 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel
from lifeline.search.policy import Edges, SearchResult
from lifeline.search.tree import MINUS_INFINITY, Tree, new_node
from lifeline.streams import UInt64Array, random_unit

# Keeps a prior of zero, an underflow, from dividing by nothing.
_TINY = 1e-30


@dataclass(frozen=True)
class GumbelConstants:
    """What may be set.

    Attributes:
        max_considered: m, actions considered at the root, at least 2.
        c_visit: constant of the value transform, in visits, >= 0.
        c_scale: its scale, > 0, for values in [0, 1].
        noise: scale of the Gumbel noise; 1 for self-play, 0 for play that is always the same.
    """

    max_considered: int = 16
    c_visit: float = 50.0
    c_scale: float = 0.2
    noise: float = 1.0


@lru_cache(maxsize=64)
def visit_schedule(max_considered: int, num_simulations: int) -> npt.NDArray[np.int32]:
    """How often an action must have been visited to be considered, for each simulation.

    Returns:
        int32 [max_considered + 1, num_simulations]; row m serves a root with m considered actions.
    Source: section 3 and algorithm 2 of the paper: halve the considered actions after equal shares of simulations.
    """
    table = np.zeros((max_considered + 1, num_simulations), np.int32)
    for m in range(max_considered + 1):
        if m <= 1:
            table[m] = np.arange(num_simulations)
            continue
        rounds = int(np.ceil(np.log2(m)))
        schedule: list[int] = []
        considered, visits_so_far = m, 0
        while len(schedule) < num_simulations:
            each = max(1, num_simulations // (rounds * considered))
            for visit in range(visits_so_far, visits_so_far + each):
                schedule += [visit] * considered
            visits_so_far += each
            considered = max(2, considered // 2)
        table[m] = schedule[:num_simulations]
    return table


class GumbelPolicy:
    """Chooses by Gumbel search; a `SearchPolicy`.

    Args:
        constants: see `GumbelConstants`.
    """

    num_leaves = 1
    proves = False

    def __init__(self, constants: GumbelConstants | None = None) -> None:
        self.constants = constants or GumbelConstants()

    def begin(self, tree: Tree, keys: UInt64Array, num_simulations: int) -> None:
        """Draw the noise of each game and set its halving schedule; the roots stand already."""
        c = self.constants
        self._schedule = visit_schedule(c.max_considered, num_simulations)
        logits = tree.nodes.root_logits
        self._noise = np.zeros(logits.shape, np.float32)
        if c.noise > 0:
            gumbel_noise(keys, np.float32(c.noise), np.empty(1, np.uint64), self._noise)
        self._considered = np.minimum((logits > MINUS_INFINITY).sum(axis=1), c.max_considered).astype(np.int32)
        self._scratch = np.zeros((2, tree.shape[2]), np.float64)

    def select(self, tree: Tree, simulation: int, edges: Edges) -> None:
        """Find in each tree the edge to grow; see `SearchPolicy.select`."""
        c = self.constants
        wanted = np.ascontiguousarray(self._schedule[self._considered, simulation])
        select_gumbel(
            wanted,
            self._noise,
            c.c_visit,
            c.c_scale,
            self._scratch,
            edges.parents,
            edges.actions,
            edges.leaf,
            tree.nodes,
        )

    def finish(self, tree: Tree) -> SearchResult:
        """The chosen action, the improved policy and the statistics of each root."""
        c, (batch, _, num_actions) = self.constants, tree.shape
        result = SearchResult.empty(batch, num_actions)
        finish_gumbel(
            self._noise,
            c.c_visit,
            c.c_scale,
            self._scratch[0],
            result.actions,
            result.policy_target,
            result.root_value,
            result.visit_counts,
            result.action_values,
            tree.nodes,
        )
        return result


@kernel
def gumbel_noise(keys, scale, stream, noise):
    """Fill noise, float32 [B, A], with Gumbel(0, 1) draws times `scale`, each row from its own key; uses up stream."""
    for b in range(len(keys)):
        stream[0] = keys[b]
        for a in range(noise.shape[1]):
            noise[b, a] = scale * np.float32(-np.log(-np.log(random_unit(stream))))


@kernel
def completed_values(b, node, completed, nodes):
    """Values of all actions at a node for its player, in [0, 1]; unvisited ones get the mixed value.

    Writes completed, float64 [A]; returns the largest visit count of a child.
    Source: equation 33 of the paper (appendix D).
    """
    num_actions = len(completed)
    sign = 1.0 if nodes.seat[b, node] == 0 else -1.0
    total, most, prior_sum, weighted = 0, 0, 0.0, 0.0
    for a in range(num_actions):
        c = nodes.child[b, node, a]
        if c >= 0:
            n = nodes.visits[b, c]
            q = sign * nodes.value_sum[b, c] / n
            p = max(np.float64(nodes.prior[b, node, a]), _TINY)
            total += n
            most = max(most, n)
            prior_sum += p
            weighted += p * q
            completed[a] = (q + 1.0) / 2.0
    mixed = sign * nodes.raw_value[b, node]
    if total > 0:
        mixed = (mixed + total * weighted / prior_sum) / (1 + total)
    mixed = (mixed + 1.0) / 2.0
    for a in range(num_actions):
        if nodes.child[b, node, a] < 0:
            completed[a] = mixed
    return most


@kernel
def improved_action(b, node, c_visit, c_scale, scratch, nodes):
    """The action below the root whose share of visits lags most behind the improved policy; ties to the lowest.

    Source: equation 14 of the paper.
    """
    completed, weights = scratch[0], scratch[1]
    most = completed_values(b, node, completed, nodes)
    scale = (c_visit + most) * c_scale
    num_actions = len(completed)
    top = -np.inf
    for a in range(num_actions):
        if nodes.prior[b, node, a] > 0.0 and completed[a] > top:
            top = completed[a]
    total = 0.0
    last_value, last_factor = -1.0, 0.0
    for a in range(num_actions):
        p = nodes.prior[b, node, a]
        if p > 0.0:
            if completed[a] != last_value:  # all unvisited actions share one value, and so one exponential
                last_value = completed[a]
                last_factor = np.exp(scale * (last_value - top))
            weights[a] = p * last_factor
            total += weights[a]
    best, best_score = -1, -np.inf
    visited = nodes.visits[b, node]
    for a in range(num_actions):
        if nodes.prior[b, node, a] > 0.0:
            c = nodes.child[b, node, a]
            n = nodes.visits[b, c] if c >= 0 else 0
            score = weights[a] / total - n / visited
            if score > best_score:
                best, best_score = a, score
    return best


@kernel
def select_gumbel(wanted, noise, c_visit, c_scale, scratch, parents, actions, leaf, nodes):
    """The work of `GumbelPolicy.select`."""
    num_actions = nodes.root_logits.shape[1]
    completed = scratch[0]
    for b in range(len(wanted)):
        node, action = 0, -1
        if not nodes.terminal[b, 0]:
            most = completed_values(b, 0, completed, nodes)
            scale = (c_visit + most) * c_scale
            best_score = -np.inf
            for a in range(num_actions):
                if nodes.root_logits[b, a] == MINUS_INFINITY:
                    continue
                c = nodes.child[b, 0, a]
                n = nodes.visits[b, c] if c >= 0 else 0
                score = noise[b, a] + nodes.root_logits[b, a] + scale * completed[a]
                if n == wanted[b] and score > best_score:
                    action, best_score = a, score
            while nodes.child[b, node, action] >= 0:
                node = nodes.child[b, node, action]
                if nodes.terminal[b, node]:
                    action = -1
                    break
                action = improved_action(b, node, c_visit, c_scale, scratch, nodes)
        parents[b] = node
        actions[b] = action
        leaf[b] = node if action < 0 else new_node(b, node, action, nodes)


@kernel
def finish_gumbel(
    noise,
    c_visit,
    c_scale,
    completed,
    chosen,
    policy_target,
    root_value,
    visit_counts,
    action_values,
    nodes,
):
    """The work of `GumbelPolicy.finish`."""
    num_actions = nodes.root_logits.shape[1]
    for b in range(len(chosen)):
        if nodes.terminal[b, 0]:
            root_value[b] = nodes.raw_value[b, 0] if nodes.seat[b, 0] == 0 else -nodes.raw_value[b, 0]
            continue
        most = completed_values(b, 0, completed, nodes)
        scale = (c_visit + most) * c_scale
        best_score, top = -np.inf, -np.inf
        for a in range(num_actions):
            if nodes.root_logits[b, a] == MINUS_INFINITY:
                continue
            c = nodes.child[b, 0, a]
            n = nodes.visits[b, c] if c >= 0 else 0
            visit_counts[b, a] = n
            action_values[b, a] = 2.0 * completed[a] - 1.0
            improved = nodes.root_logits[b, a] + scale * completed[a]
            top = max(top, improved)
            if n == most and noise[b, a] + improved > best_score:
                chosen[b], best_score = a, noise[b, a] + improved
        total, value = 0.0, 0.0
        for a in range(num_actions):
            if nodes.root_logits[b, a] > MINUS_INFINITY:
                weight = np.exp(nodes.root_logits[b, a] + scale * completed[a] - top)
                total += weight
                value += weight * action_values[b, a]
                policy_target[b, a] = weight
        for a in range(num_actions):
            policy_target[b, a] /= np.float32(total)
        root_value[b] = value / total
