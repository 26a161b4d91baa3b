"""How self-play searches: by which policy, with how many simulations, and in groups of games that take turns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.rules import Rules
from lifeline.search.evaluator import Evaluator, FloatArray
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.policy import SearchResult
from lifeline.search.puct import PuctConstants, PuctPolicy
from lifeline.search.search import BatchSearch, run_together
from lifeline.streams import UInt64Array
from training.config import SearchConfig, SelfPlayConfig


def gumbel_constants(config: SearchConfig, noise: bool) -> GumbelConstants:
    """The constants of Gumbel search, with the noise that explores or without it."""
    return GumbelConstants(config.max_considered, config.c_visit, config.c_scale, 1.0 if noise else 0.0)


def make_policy(config: SearchConfig, noise: bool) -> GumbelPolicy | PuctPolicy:
    """The policy of the config, with the noise that explores or without it."""
    if config.policy == "gumbel":
        return GumbelPolicy(gumbel_constants(config, noise))
    constants = PuctConstants(
        c_puct=config.c_puct,
        c_log=config.c_log,
        c_base=config.c_base,
        fpu_reduction=config.fpu_reduction,
        fpu_value=config.fpu_value,
        noise_share=config.noise_share if noise else 0.0,
        noise_total=config.noise_total,
        proves=config.proves,
    )
    return PuctPolicy(constants)


def simulations_at(config: SearchConfig, version: int) -> int:
    """Simulations of a full search with weights that have so many learner steps behind them."""
    if not config.first_simulations:
        return config.num_simulations
    grown = min(1.0, version / config.growth_steps)
    return round(config.first_simulations + grown * (config.num_simulations - config.first_simulations))


def num_groups(config: SelfPlayConfig, on_gpu: bool) -> int:
    """Groups that the games of a worker are searched in."""
    if config.groups != "auto":
        return config.groups
    return min(2 if on_gpu else 1, config.batch_size)


class GroupedSearch:
    """Searches B games in groups of rows: while the leaves of one group are evaluated, another one selects.

    What it finds does not hang on the groups, as long as the evaluator's answers do not hang on the size of a batch.

    Args:
        rules: what is played.
        batch_size: B.
        groups: 1 to B.
        config: how moves are searched.
        evaluator: judges positions, asked from one thread at a time; `use` exchanges it.
    """

    def __init__(self, rules: Rules, batch_size: int, groups: int, config: SearchConfig, evaluator: Evaluator) -> None:
        self._gumbel = config.policy == "gumbel"
        sizes = [len(rows) for rows in np.array_split(np.arange(batch_size), groups)]
        self._borders = np.cumsum(sizes)[:-1]
        # Loud and quiet, of each group: a policy keeps what belongs to one search.
        self._policies = [(make_policy(config, noise=True), make_policy(config, noise=False)) for _ in sizes]
        self._searches = [
            BatchSearch(partial(BatchEnv, rules, size), evaluator, loud, config.num_simulations)
            for size, (loud, _) in zip(sizes, self._policies, strict=True)
        ]
        self._pool = ThreadPoolExecutor(1) if groups > 1 else None

    def use(self, evaluator: Evaluator) -> None:
        """Judge positions by another evaluator from now on."""
        for search in self._searches:
            search.evaluator = evaluator

    @property
    def root_prior(self) -> FloatArray:
        """float32 [B, A], the network's policy in the games searched last, 0 where illegal."""
        return np.concatenate([search.root_prior for search in self._searches])

    def run(
        self,
        env: BatchEnv,
        keys: UInt64Array,
        num_simulations: int,
        noise: bool,
        temperature: npt.NDArray[np.float64],
    ) -> SearchResult:
        """Search from the current position of every game; `env` is not changed.

        Args:
            env: B games.
            keys: uint64 [B], the random stream of each game, a fresh one for each ply.
            num_simulations: leaves grown for each game, at least 2.
            noise: whether the search explores.
            temperature: float64 [B], of the choice among visits; see `PuctPolicy`. Gumbel search plays the action
                that its noise favours where it is above 0, and that which the improved policy does where it is 0.
        """
        parts = np.split(temperature, self._borders)
        for search, (loud, quiet), part in zip(self._searches, self._policies, parts, strict=True):
            search.policy = loud if noise else quiet
            search.num_simulations = num_simulations
            if isinstance(search.policy, PuctPolicy):
                search.policy.temperature = part
        result = self._run(env, keys)
        if self._gumbel:
            best = np.where(result.actions < 0, -1, result.policy_target.argmax(axis=1))
            result = replace(result, actions=np.where(temperature > 0, result.actions, best))
        return result

    def _run(self, env: BatchEnv, keys: UInt64Array) -> SearchResult:
        if self._pool is None:
            return self._searches[0].run(env, keys)
        states = np.split(env.gather(), self._borders)
        return SearchResult.of(run_together(self._searches, states, np.split(keys, self._borders), self._pool))
