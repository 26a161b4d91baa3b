"""PUCT: the search of AlphaZero, with what strong players have added to it.

Sources: Silver et al. 2018, A general reinforcement learning algorithm that masters chess, shogi and Go through
self-play (the score, growing with log visits, and the root's noise); Wu 2019, Accelerating self-play learning in Go
(first-play urgency below the parent, lower confidence bounds); Winands et al. 2008, Monte-Carlo tree search solver
(decided games).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel
from lifeline.search.policy import Edges, SearchResult
from lifeline.search.tree import Tree, new_node
from lifeline.streams import UInt64Array, random_unit

# Variance that a child is thought to have had before its first visit, with the weight of one visit.
_PRIOR_VARIANCE = 0.5


@dataclass(frozen=True)
class PuctConstants:
    """What may be set. Values are in [-1, 1].

    Attributes:
        c_puct: exploration, > 0.
        c_log: how much that grows with the logarithm of the visits, >= 0; 0 keeps it constant.
        c_base: visits from which on it grows, > 0.
        fpu_reduction: an unvisited action counts as its parent less this, times the root of the prior visited so far.
        fpu_value: what an unvisited action counts as instead, whatever the parent; None = relative to the parent.
        root_fpu_reduction: the same as fpu_reduction at the root.
        noise_share: share of Dirichlet noise in the root's prior, in [0, 1); 0 for play.
        noise_total: its concentration, shared by all legal actions.
        lcb: standard errors by which the value of an action counts as less when the move is chosen; 0: most visits win.
        lcb_visits: share of the most visits that an action needs to be chosen so.
        leaves: k, leaves grown at once in each tree; those under way count as losses meanwhile.
        proves: whether won and lost games of the tree are taken for what they are, and moves that lead to them.
    """

    c_puct: float = 1.25
    c_log: float = 0.5
    c_base: float = 500.0
    fpu_reduction: float = 0.25
    fpu_value: float | None = None
    root_fpu_reduction: float = 0.1
    noise_share: float = 0.0
    noise_total: float = 10.0
    lcb: float = 2.0
    lcb_visits: float = 0.15
    leaves: int = 1
    proves: bool = True


class PuctPolicy:
    """Chooses by PUCT; a `SearchPolicy`.

    Args:
        constants: see `PuctConstants`.

    Attributes:
        temperature: float or float [B], of the choice among visits: 0 plays the best move, 1 in proportion to them.
    """

    def __init__(self, constants: PuctConstants | None = None) -> None:
        self.constants = constants or PuctConstants()
        self.temperature: float | npt.NDArray[np.floating] = 0.0

    @property
    def num_leaves(self) -> int:
        """k; see `SearchPolicy`."""
        return self.constants.leaves

    @property
    def proves(self) -> bool:
        """See `SearchPolicy`."""
        return self.constants.proves

    def begin(self, tree: Tree, keys: UInt64Array, num_simulations: int) -> None:
        """Mix noise into the priors of the roots."""
        c = self.constants
        self._keys = keys
        self._root_prior = np.ascontiguousarray(tree.nodes.prior[:, 0])
        if c.noise_share > 0:
            mix_noise(keys, c.noise_share, c.noise_total, np.empty(1, np.uint64), self._root_prior)

    def select(self, tree: Tree, simulation: int, edges: Edges) -> None:
        """Find in each tree the edges to grow; see `SearchPolicy.select`."""
        c = self.constants
        select_puct(
            c.leaves,
            c.c_puct,
            c.c_log,
            c.c_base,
            c.fpu_reduction,
            c.root_fpu_reduction,
            c.fpu_value is not None,
            c.fpu_value or 0.0,
            self._root_prior,
            edges.parents,
            edges.actions,
            edges.leaf,
            tree.nodes,
        )

    def finish(self, tree: Tree) -> SearchResult:
        """The chosen action, the share of visits of each, and the statistics of each root."""
        c, (batch, _, num_actions) = self.constants, tree.shape
        result = SearchResult.empty(batch, num_actions)
        finish_puct(
            self._keys,
            np.ascontiguousarray(np.broadcast_to(np.asarray(self.temperature, np.float64), batch)),
            c.lcb,
            c.lcb_visits,
            np.empty(1, np.uint64),
            result.actions,
            result.policy_target,
            result.root_value,
            result.visit_counts,
            result.action_values,
            tree.nodes,
        )
        return result


@kernel
def random_gamma(shape, stream):
    """A draw from the gamma distribution of a shape > 0 and scale 1; uses up stream.

    Source: Marsaglia and Tsang 2000, A simple method for generating gamma variables; normal draws by Box and Muller.
    """
    boost = 1.0
    if shape < 1.0:
        boost = random_unit(stream) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    while True:
        normal = np.sqrt(-2.0 * np.log(random_unit(stream))) * np.cos(2.0 * np.pi * random_unit(stream))
        v = 1.0 + normal / np.sqrt(9.0 * d)
        if v > 0.0:
            v = v * v * v
            if np.log(random_unit(stream)) < 0.5 * normal * normal + d - d * v + d * np.log(v):
                return boost * d * v


@kernel
def mix_noise(keys, share, total, stream, prior):
    """Mix Dirichlet noise over the legal actions into priors, float32 [B, A], in place; each row from its own key."""
    for b in range(len(keys)):
        stream[0] = keys[b]
        legal = 0
        for a in range(prior.shape[1]):
            if prior[b, a] > 0.0:
                legal += 1
        if legal == 0:
            continue
        drawn, before = 0.0, stream[0]
        for a in range(prior.shape[1]):
            if prior[b, a] > 0.0:
                drawn += random_gamma(total / legal, stream)
        stream[0] = before  # the same draws again, now that their sum is known
        for a in range(prior.shape[1]):
            if prior[b, a] > 0.0:
                noise = random_gamma(total / legal, stream) / max(drawn, 1e-300)
                prior[b, a] = np.float32((1.0 - share) * prior[b, a] + share * noise)


@kernel
def best_action(b, node, c_puct, c_log, c_base, reduction, fixed, fixed_value, priors, nodes):
    """The action of the greatest PUCT score at a node for its player, simulations under way counting as lost.

    priors, float32 [A], are those of the node; ties go to the lowest action. A decided win is always taken, a decided
    loss only where there is nothing else.
    """
    num_actions = len(priors)
    sign = 1.0 if nodes.seat[b, node] == 0 else -1.0
    total, seen = 0, 0.0
    for a in range(num_actions):
        c = nodes.child[b, node, a]
        if c >= 0 and priors[a] > 0.0:
            total += nodes.visits[b, c] + nodes.virtual[b, c]
            seen += priors[a]
            if nodes.terminal[b, c] and nodes.raw_value[b, c] * sign > 0.0:
                return a
    exploration = (c_puct + c_log * np.log((total + c_base) / c_base)) * np.sqrt(total + 0.01)
    unvisited = fixed_value
    if not fixed:
        unvisited = sign * nodes.value_sum[b, node] / max(nodes.visits[b, node], 1) - reduction * np.sqrt(seen)
    best, best_score, lost = -1, -np.inf, -1
    for a in range(num_actions):
        if priors[a] <= 0.0:
            continue
        c = nodes.child[b, node, a]
        n, q = 0, unvisited
        if c >= 0:
            if nodes.terminal[b, c] and nodes.raw_value[b, c] * sign < 0.0:
                lost = a
                continue
            n = nodes.visits[b, c] + nodes.virtual[b, c]
            if n > 0:
                q = (sign * nodes.value_sum[b, c] - nodes.virtual[b, c]) / n
        score = q + exploration * priors[a] / (1 + n)
        if score > best_score:
            best, best_score = a, score
    return best if best >= 0 else lost


@kernel
def select_puct(
    width,
    c_puct,
    c_log,
    c_base,
    reduction,
    root_reduction,
    fixed,
    fixed_value,
    root_prior,
    parents,
    actions,
    leaf,
    nodes,
):
    """The work of `PuctPolicy.select`."""
    for b in range(len(root_prior)):
        for k in range(width):
            row = b * width + k
            before, node, action = 0, 0, -1
            while not nodes.terminal[b, node]:
                if node == 0:
                    action = best_action(
                        b, 0, c_puct, c_log, c_base, root_reduction, fixed, fixed_value, root_prior[b], nodes
                    )
                else:
                    action = best_action(
                        b, node, c_puct, c_log, c_base, reduction, fixed, fixed_value, nodes.prior[b, node], nodes
                    )
                before, node = node, nodes.child[b, node, action]
                if node < 0 or nodes.visits[b, node] == 0:
                    break
            if node >= 0 and nodes.visits[b, node] == 0:
                # Where its evaluation is awaited already: this row stands for none, and waits with another.
                leaf[row] = -1
                parents[row] = parents[row - 1]
                actions[row] = actions[row - 1]
                continue
            parents[row] = before
            actions[row] = action
            leaf[row] = node if node >= 0 else new_node(b, before, action, nodes)
            at = leaf[row]
            while at >= 0 and width > 1:
                nodes.virtual[b, at] += 1
                at = nodes.parent[b, at]


@kernel
def lower_bound(b, child, sign, lcb, nodes):
    """A value that a visited child hardly falls below, for a player: its mean less so many standard errors."""
    n = nodes.visits[b, child]
    mean = nodes.value_sum[b, child] / n
    if nodes.terminal[b, child]:
        return sign * mean
    variance = (max(nodes.square_sum[b, child] - n * mean * mean, 0.0) + _PRIOR_VARIANCE) / n
    return sign * mean - lcb * np.sqrt(variance / n)


@kernel
def finish_puct(
    keys,
    temperature,
    lcb,
    lcb_visits,
    stream,
    chosen,
    policy_target,
    root_value,
    visit_counts,
    action_values,
    nodes,
):
    """The work of `PuctPolicy.finish`."""
    num_actions = nodes.child.shape[2]
    for b in range(len(chosen)):
        sign = 1.0 if nodes.seat[b, 0] == 0 else -1.0
        if nodes.terminal[b, 0]:
            root_value[b] = sign * nodes.raw_value[b, 0]
            continue
        mean = sign * nodes.value_sum[b, 0] / nodes.visits[b, 0]
        most, won, lost, legal = 0, -1, 0, 0  # most: visits of an action that is not decided
        for a in range(num_actions):
            if nodes.prior[b, 0, a] <= 0.0:
                continue
            legal += 1
            c = nodes.child[b, 0, a]
            n = nodes.visits[b, c] if c >= 0 else 0
            visit_counts[b, a] = n
            action_values[b, a] = mean
            if n > 0:
                action_values[b, a] = sign * nodes.value_sum[b, c] / n
                if nodes.terminal[b, c]:
                    if nodes.raw_value[b, c] * sign > 0.0:
                        won = a if won < 0 else won
                    else:
                        lost += 1
                else:
                    most = max(most, n)
        if won >= 0:
            chosen[b] = won
            policy_target[b, won] = 1.0
            root_value[b] = 1.0
            continue
        sample = temperature[b] > 0.0 and most > 0
        best, best_score, weight, value = -1, -np.inf, 0.0, 0.0
        for a in range(num_actions):
            n = visit_counts[b, a]
            c = nodes.child[b, 0, a]
            if n == 0 or nodes.prior[b, 0, a] <= 0.0 or (nodes.terminal[b, c] and lost < legal):
                continue
            policy_target[b, a] = n
            weight += n
            value += n * action_values[b, a]
            score = np.float64(n)  # where all is lost it counts what took longest to refute
            if lcb > 0.0 and lost < legal:
                score = lower_bound(b, c, sign, lcb, nodes) if n >= lcb_visits * most else -np.inf
            if score > best_score:
                best, best_score = a, score
        root_value[b] = value / weight if weight > 0.0 else mean
        for a in range(num_actions):
            policy_target[b, a] /= np.float32(max(weight, 1e-30))
        if weight == 0.0:  # all that was visited is lost: the likeliest of the others
            for a in range(num_actions):
                likelier = best < 0 or nodes.prior[b, 0, a] > nodes.prior[b, 0, best]
                if nodes.prior[b, 0, a] > 0.0 and visit_counts[b, a] == 0 and likelier:
                    best = a
            policy_target[b, best] = 1.0
        if sample:
            # By visits to the power of 1 / temperature: the greatest of logarithms with Gumbel noise.
            stream[0] = keys[b] ^ np.uint64(0x5851F42D4C957F2D)
            best_score = -np.inf
            for a in range(num_actions):
                u = random_unit(stream)
                if policy_target[b, a] > 0.0:
                    score = np.log(policy_target[b, a]) / temperature[b] - np.log(-np.log(u))
                    if score > best_score:
                        best, best_score = a, score
        chosen[b] = best
