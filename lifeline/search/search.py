"""BatchSearch: n simulations for each of B games, their leaves evaluated in one batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lifeline.errors import ConfigError
from lifeline.search.evaluator import Env, Evaluator, FloatArray
from lifeline.search.policy import Edges, SearchPolicy, SearchResult
from lifeline.search.tree import Tree, most_visited_lines
from lifeline.streams import UInt64Array


class EnvFactory(Protocol):
    """Makes the environment in which leaves are stepped: same game, same batch size."""

    def __call__(self) -> Env: ...


class Prover(Protocol):
    """Knows the exact values of some positions."""

    def prove(self, leaves: Env) -> npt.NDArray[np.int8]:
        """Int8 [B]: +1 or -1 where the value for the player to move is known, else 0."""
        ...


class BatchSearch:
    """Searches B games at once. The batch is constant: finished games keep their row and are ignored.

    Args:
        new_env: makes an environment like the one searched, for the leaves; of B k games where the policy grows k
            leaves of each tree at once.
        evaluator: judges the leaves.
        policy: how to choose.
        num_simulations: leaves grown for each game and move, at least 2; rounded up to a multiple of the policy's k.
        reuse: whether a search goes on with what an earlier one knows of a position: where a game has gone on, the part
            of its tree below. Only for policies that can (PUCT).
        prover: knows the exact values of some leaves.

    Attributes:
        evaluator, num_simulations: may be exchanged between two searches; memory grows when it must.
        policy: the same, by one of the same k.

    Raises:
        ConfigError: num_simulations below 2, or an environment of another batch size.
    """

    def __init__(
        self,
        new_env: EnvFactory,
        evaluator: Evaluator,
        policy: SearchPolicy,
        num_simulations: int,
        reuse: bool = False,
        prover: Prover | None = None,
    ) -> None:
        if num_simulations < 2:
            raise ConfigError(f"num_simulations must be at least 2, not {num_simulations}")
        self.evaluator = evaluator
        self.num_simulations = num_simulations
        self.policy = policy
        self._reuse, self._prover = reuse, prover
        self._leaves: Any = new_env()
        width = policy.num_leaves
        batch, rest = divmod(self._leaves.batch_size, width)
        if rest:
            raise ConfigError(f"{self._leaves.batch_size} leaves cannot be shared out, {width} to each game")
        self._tree = Tree(self._leaves, num_simulations + width, batch)
        self._edges = Edges.empty(batch * width)
        self._trees = np.repeat(np.arange(batch), width)

    def run(self, env: Env, keys: UInt64Array, stop: Callable[[], bool] | None = None) -> SearchResult:
        """Search from the current position of every game; `env` is not changed.

        Args:
            env: B games.
            keys: uint64 [B], the random stream of each game, a fresh one for each ply.
            stop: asked before each simulation; ends the search when it returns True, with what has been found by then.
        """
        steps = self.steps(env.gather(), keys, stop)
        try:
            leaves = next(steps)
            while True:
                leaves = steps.send(self.evaluator.evaluate(leaves))
        except StopIteration as end:
            result: SearchResult = end.value
            return result

    def steps(
        self, states: npt.NDArray[Any], keys: UInt64Array, stop: Callable[[], bool] | None = None
    ) -> Generator[Env, tuple[FloatArray, FloatArray], SearchResult]:
        """The same, by turns: gives the leaves to be evaluated, is sent the evaluator's answer, and returns the result.

        Args:
            states: [B, ...], of the games, as their environment's `gather` gives them.
            keys, stop: see `run`.
        """
        tree, leaves, edges, width = self._tree, self._leaves, self._edges, self.policy.num_leaves
        kept = tree.follow(states) if self._reuse else np.zeros(len(states), np.bool_)
        tree.plant(~kept)
        tree.reserve(self.num_simulations + width - 1)
        if not kept.all():
            leaves.scatter(None, states[self._trees])
            edges.leaf.fill(-1)
            edges.leaf[::width] = np.where(kept, -1, 0)
            tree.add(edges.leaf, leaves, *(yield leaves), prove=self.policy.proves)
        self.policy.begin(tree, keys, self.num_simulations)
        for simulation in range(0, self.num_simulations, width):
            if stop is not None and stop():
                break
            self.policy.select(tree, simulation, edges)
            leaves.scatter(None, tree.states[self._trees, edges.parents])
            leaves.step(edges.actions)
            known = None if self._prover is None else self._prover.prove(leaves)
            tree.add(edges.leaf, leaves, *(yield leaves), self.policy.proves, known)
        return self.policy.finish(tree)

    @property
    def num_nodes(self) -> int:
        """Nodes of the largest tree."""
        return int(self._tree.nodes.num_nodes.max())

    @property
    def root_prior(self) -> FloatArray:
        """float32 [B, A], the evaluator's probabilities of the actions in the games searched last, 0 where illegal.

        Of running games; valid until the next `run`, and not to be written to.
        """
        return self._tree.nodes.prior[:, 0]

    def principal_variation(self, row: int, action: int) -> list[int]:
        """The plies the last search expects: an action in one running game, and behind it always the most visited one.

        Ties go to the lowest action. Ends where the tree or the game ends.
        """
        return self.principal_variations(np.array([row]), np.array([action]), self.num_nodes)[0]

    def principal_variations(
        self, rows: npt.NDArray[np.int64], actions: npt.NDArray[np.int64], most: int
    ) -> list[list[int]]:
        """The same of many actions, one in each of some running games; of at most so many plies."""
        lines, lengths = np.empty((len(rows), max(1, most)), np.int32), np.empty(len(rows), np.int32)
        most_visited_lines(rows, actions, lines, lengths, self._tree.nodes)
        return [line[:length].tolist() for line, length in zip(lines, lengths.tolist(), strict=True)]


def run_together(
    searches: Sequence[BatchSearch], states: Sequence[npt.NDArray[Any]], keys: Sequence[UInt64Array], pool: Executor
) -> list[SearchResult]:
    """Run several searches at once, the leaves of one being evaluated while another one selects.

    Args:
        searches: their evaluators are asked from one thread each time.
        states, keys: of the games of each; see `BatchSearch.steps`.
        pool: evaluates; of one thread, where evaluators are not to be asked by two.
    """
    steps = [search.steps(s, k) for search, s, k in zip(searches, states, keys, strict=True)]
    results: dict[int, SearchResult] = {}
    waiting = deque((n, pool.submit(searches[n].evaluator.evaluate, next(step))) for n, step in enumerate(steps))
    while waiting:
        number, answer = waiting.popleft()
        try:
            leaves = steps[number].send(answer.result())
            waiting.append((number, pool.submit(searches[number].evaluator.evaluate, leaves)))
        except StopIteration as end:
            results[number] = end.value
    return [results[n] for n in range(len(searches))]
