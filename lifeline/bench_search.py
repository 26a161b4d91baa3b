"""How fast search is here: what `lifeline bench search` measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lifeline.bench import rate
from lifeline.env import BatchEnv, States
from lifeline.errors import ConfigError
from lifeline.rules import Rules
from lifeline.search.evaluator import Env, Evaluator, FloatArray, UniformEvaluator
from lifeline.search.gumbel import GumbelPolicy
from lifeline.search.policy import SearchPolicy
from lifeline.search.puct import PuctConstants, PuctPolicy
from lifeline.search.search import BatchSearch

POLICIES = ("gumbel", "puct")

# Trees of more bytes than this are refused: more than a machine that measures can be expected to have.
_MAX_TREES = 8e9
# Of each node and action: a child and a prior.
_EDGE_BYTES = 8


@dataclass(frozen=True)
class SearchRates:
    """What search does in a second on one thread, medians over rounds.

    Attributes:
        base, opening, policy: what was searched, and how.
        batch: games searched at once. num_simulations: leaves grown for each of them, beside its root.
        leaves: grown at once in each tree.
        leaves_per_second: positions that trees were grown by, roots and finished games among them.
        low, high: the slowest and the fastest round.
        leaves_per_second_with_planes: the same where all of them have their observation planes encoded, as a host must
            that feeds a network; None where a network was fed.
    """

    base: int
    opening: str
    policy: str
    batch: int
    num_simulations: int
    leaves: int
    leaves_per_second: float
    low: float
    high: float
    leaves_per_second_with_planes: float | None = None


class PlanesEvaluator(UniformEvaluator):
    """Knows nothing, but has what a network would be shown made ready."""

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """Zeros; see `Evaluator.evaluate`."""
        _ = leaves.observation  # encoded when asked for
        return super().evaluate(leaves)


def mid_game_states(rules: Rules, count: int, rng: np.random.Generator) -> States:
    """States of `count` running games, after uniformly random numbers of random plies, up to one a cell."""
    env, stream = BatchEnv(rules, count), rng.integers(0, 2**63, 1).astype(np.uint64)
    found: list[States] = []
    while sum(map(len, found)) < count:
        env.reset()
        env.step_random(rng.integers(0, rules.num_cells, count), stream)
        found.append(env.gather(np.flatnonzero(~env.terminated)))
    return np.concatenate(found)[:count]


def search_work(
    rules: Rules, batch: int, num_simulations: int, policy: SearchPolicy, evaluator: Evaluator
) -> Callable[[], float]:
    """A function that searches `batch` running mid-game positions, always the same, and returns the leaves grown."""
    rng = np.random.default_rng(0)
    env = BatchEnv(rules, batch)
    env.scatter(None, mid_game_states(rules, batch, rng))
    search = BatchSearch(lambda: BatchEnv(rules, batch * policy.num_leaves), evaluator, policy, num_simulations)

    def work() -> float:
        search.run(env, rng.integers(0, 2**63, batch).astype(np.uint64))
        return float(batch * (num_simulations + 1))

    return work


def search_rates(
    rules: Rules,
    batch: int,
    num_simulations: int,
    policy: str = "gumbel",
    evaluator: Evaluator | None = None,
    seconds: float = 5.0,
    leaves: int = 1,
) -> SearchRates:
    """Measure search.

    Args:
        batch: games searched at once; num_simulations: for each, at least 2.
        policy: a name of `POLICIES`.
        evaluator: judges the leaves; None for one that costs nothing.
        seconds: for each figure, compilation not counted.
        leaves: grown at once in each tree, 1 to num_simulations; more than 1 by PUCT only.

    Raises:
        ConfigError: an unknown policy, fewer than two simulations, leaves out of range, or trees beyond any memory.
    """
    if policy not in POLICIES:
        raise ConfigError(f"policy is one of {', '.join(POLICIES)}, not {policy[:40]!r}")
    most = num_simulations if policy == "puct" else 1
    if not 1 <= leaves <= most:
        raise ConfigError(f"leaves grown at once by {policy} are 1 to {most}, not {leaves}")
    size = batch * (num_simulations + 1.0) * rules.num_actions * _EDGE_BYTES
    if size > _MAX_TREES:
        raise ConfigError(
            f"{batch} trees of {num_simulations} simulations take {size / 1e9:,.0f} GB: at most {_MAX_TREES / 1e9:.0f}"
        )

    def works(judge: Evaluator) -> Callable[[], float]:
        how = PuctPolicy(PuctConstants(leaves=leaves)) if policy == "puct" else GumbelPolicy()
        work = search_work(rules, batch, num_simulations, how, judge)
        work()  # compiles
        return work

    plain = works(evaluator or UniformEvaluator())
    rates = rate(plain, seconds)
    encoded = None
    if evaluator is None:
        encoded = float(np.median(rate(works(PlanesEvaluator()), seconds)))
    return SearchRates(
        rules.base,
        rules.opening,
        policy,
        batch,
        num_simulations,
        leaves,
        float(np.median(rates)),
        float(rates.min()),
        float(rates.max()),
        encoded,
    )
