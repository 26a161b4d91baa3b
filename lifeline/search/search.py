"""BatchSearch: n simulations for each of B games, their leaves evaluated in one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from lifeline.errors import ConfigError
from lifeline.search.evaluator import Env, Evaluator, FloatArray
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

    def run(self, env: Env, keys: UInt64Array, stop: Callable[[], bool] | None = None) -> SearchResult:
        """Search from the current position of every game; `env` is not changed.

        Args:
            env: B games.
            keys: uint64 [B], the random stream of each game, a fresh one for each ply.
            stop: asked before each simulation; ends the search when it returns True, with what has been found by then.
        """
        tree, leaves = self._tree, self._leaves
        parents = np.zeros(leaves.batch_size, np.int32)
        actions = np.full(leaves.batch_size, -1, np.int32)
        leaves.scatter(None, env.gather())
        tree.clear()
        tree.add(parents, actions, leaves, *self.evaluator.evaluate(leaves))
        self._policy.begin(tree, keys, self.num_simulations)
        for simulation in range(self.num_simulations):
            if stop is not None and stop():
                break
            self._policy.select(tree, simulation, parents, actions)
            leaves.scatter(None, tree.states[tree.rows, parents])
            leaves.step(actions)
            tree.add(parents, actions, leaves, *self.evaluator.evaluate(leaves))
        return self._policy.finish(tree)

    @property
    def root_prior(self) -> FloatArray:
        """float32 [B, A], the evaluator's probabilities of the actions in the games searched last, 0 where illegal.

        Of running games; valid until the next `run`, and not to be written to.
        """
        return self._tree.prior[:, 0]

    def principal_variation(self, row: int, action: int) -> list[int]:
        """The plies the last search expects: an action in one running game, and behind it always the most visited one.

        Ties go to the lowest action. Ends where the tree or the game ends.
        """
        tree, line = self._tree, [action]
        node = int(tree.child[row, 0, action])
        # Finished games have no children, but what other searches left in their rows.
        while node >= 0 and not tree.terminal[row, node]:
            children = tree.child[row, node]
            visits = np.where(children >= 0, tree.visits[row, children], 0)
            if not visits.any():
                break
            line.append(int(visits.argmax()))
            node = int(children[line[-1]])
        return line
