"""BatchSearch: n simulations for each of B games, their leaves evaluated in one batch."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lifeline.errors import ConfigError
from lifeline.search.evaluator import Env, Evaluator
from lifeline.search.policy import SearchPolicy, SearchResult
from lifeline.search.tree import Tree
from lifeline.streams import UInt64Array


class EnvFactory(Protocol):
    """Makes the environment in which leaves are stepped: same game, same batch size."""

    def __call__(self) -> Env: ...


class BatchSearch:
    """Searches B games at once. The batch is constant: finished games keep their row and are ignored.

    Args:
        new_env: makes an environment like the one searched, for the leaves.
        evaluator: judges the leaves.
        policy: how to choose.
        num_simulations: leaves grown for each game and move, at least 2.

    Raises:
        ConfigError: num_simulations below 2.
    """

    def __init__(self, new_env: EnvFactory, evaluator: Evaluator, policy: SearchPolicy, num_simulations: int) -> None:
        if num_simulations < 2:
            raise ConfigError(f"num_simulations must be at least 2, not {num_simulations}")
        self.evaluator = evaluator
        self.num_simulations = num_simulations
        self._policy = policy
        self._leaves: Any = new_env()
        self._tree = Tree(self._leaves, num_simulations + 1)

    def run(self, env: Env, keys: UInt64Array) -> SearchResult:
        """Search from the current position of every game; `env` is not changed.

        Args:
            env: B games.
            keys: uint64 [B], the random stream of each game, a fresh one for each ply.
        """
        tree, leaves = self._tree, self._leaves
        parents = np.zeros(leaves.batch_size, np.int32)
        actions = np.full(leaves.batch_size, -1, np.int32)
        leaves.scatter(None, env.gather())
        tree.clear()
        tree.add(parents, actions, leaves, *self.evaluator.evaluate(leaves))
        self._policy.begin(tree, keys, self.num_simulations)
        for simulation in range(self.num_simulations):
            self._policy.select(tree, simulation, parents, actions)
            leaves.scatter(None, tree.states[tree.rows, parents])
            leaves.step(actions)
            tree.add(parents, actions, leaves, *self.evaluator.evaluate(leaves))
        return self._policy.finish(tree)
