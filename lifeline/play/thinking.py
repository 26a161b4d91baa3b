"""Search as players use it: over many positions at once, or over one for as long as there is time; and the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.env import BatchEnv
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator, FloatArray
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.policy import SearchPolicy, SearchResult
from lifeline.search.prover import SolverProver
from lifeline.search.puct import PuctConstants, PuctPolicy
from lifeline.search.search import BatchSearch
from lifeline.solver import Solution, Solver
from lifeline.streams import UInt64Array

IntArray = npt.NDArray[np.int64]

# Positions that the solver may search for each simulation, and at most: about as long as the simulation takes with a
# small network. It is asked where these are at least two to the power of the legal actions, and then finishes more
# often than not.
_SOLVER_NODES = 256
_MOST_SOLVER_NODES = 500_000
# Searches with fewer simulations look less far ahead at the end of the game too: levels play by them.
_MANY_SIMULATIONS = 64
_FEW_SOLVER_NODES = 32
_SOLVER_TABLE_BITS = 16
# Part of a time that the solver may take, and the positions a second that it may count on.
_SOLVER_SHARE = 0.25
_SOLVER_SPEED = 1_000_000
# Legal actions up to which leaves are solved.
_PROVE = 10
_FEW_PROVE = 7
# What trees that are kept may take together, in bytes.
_MOST_BYTES = 400_000_000
# Of each node of a tree, beside those of its actions: its numbers, and the state of the game.
_NODE_BYTES = 200
_ACTION_BYTES = 8
# Plies of a line that are told, at most.
_LONGEST_LINE = 20
# Simulations of the first of the searches that go on until a time is over, and those that they are thought to come to.
_FIRST_SIMULATIONS = 16
_TIMED_SIMULATIONS = 1024


@dataclass(frozen=True)
class Thought:
    """What is thought of B running positions, all for the player to move.

    Attributes:
        best: int64 [B], the action to play.
        value: float32 [B] in [-1, 1].
        visits: int32 [B, A]; values: float32 [B, A], unvisited actions have an estimate.
        policy: float32 [B, A], the improved policy; prior: float32 [B, A], the network's.
        solved: int8 [B], +1 won, -1 lost, 0 not known.
        lines: of each row, the plies expected from each visited action on, itself first; to be called before the next
            search.
    """

    best: IntArray
    value: FloatArray
    visits: npt.NDArray[np.int32]
    values: FloatArray
    policy: FloatArray
    prior: FloatArray
    solved: npt.NDArray[np.int8]
    lines: Callable[[], list[dict[int, tuple[int, ...]]]]


class Thinking:
    """Searches of one set of rules by one evaluator, and their memory. Not to be shared between threads.

    Args:
        rules: what is played.
        evaluator: judges positions.
        search: "puct" or "gumbel".
        leaves: grown at once in a tree by PUCT; None = by the number of simulations.
        solver_nodes: positions the solver may search for each position; 0 = it is not asked; None = by the number of
            simulations.
        prove: legal actions up to which a leaf is solved, by PUCT; 0 = none is; None = as far as it pays.
        constants: of Gumbel search; the noise in them is not used.
    """

    def __init__(
        self,
        rules: Rules,
        evaluator: Evaluator,
        search: str = "puct",
        leaves: int | None = None,
        solver_nodes: int | None = None,
        prove: int | None = None,
        constants: GumbelConstants | None = None,
    ) -> None:
        self._rules, self._evaluator, self._search = rules, evaluator, search
        self._leaves, self._solver_nodes, self._prove = leaves, solver_nodes, prove
        self._constants = replace(constants or GumbelConstants(), noise=0.0)
        self._searches: dict[tuple[int, int], BatchSearch] = {}
        self._kept: BatchSearch | None = None
        self._solver: Solver | None = None
        # After the opening Black is to play, and has no stone: a game that is over.
        over = replace(Position.start(rules), turn=rules.opening_turns)
        self._finished = kernels.encode_position(over)[None]

    def forget(self) -> None:
        """Let go of the tree that is kept from move to move."""
        self._kept = None

    def leaves_for(self, simulations: int) -> int:
        """Leaves grown at once in a search of so many simulations."""
        if self._search != "puct":
            return 1
        return leaves_for(simulations) if self._leaves is None else min(self._leaves, max(1, simulations))

    def _new_search(self, simulations: int, leaves: int, batch: int = 1, reuse: bool = False) -> BatchSearch:
        prove = self._prove
        if prove is None:
            prove = _PROVE if reuse or simulations >= _MANY_SIMULATIONS else _FEW_PROVE
        policy: SearchPolicy = (
            PuctPolicy(PuctConstants(leaves=leaves)) if self._search == "puct" else GumbelPolicy(self._constants)
        )
        return BatchSearch(
            lambda: BatchEnv(self._rules, batch * leaves),
            self._evaluator,
            policy,
            simulations,
            reuse=reuse,
            prover=SolverProver(self._rules, prove) if prove and policy.proves else None,
        )

    def run(
        self, env: BatchEnv, keys: UInt64Array, simulations: int, stop: Callable[[], bool] | None = None
    ) -> Thought:
        """Search all games of a batch, each from a tree of its own.

        Args:
            env: B running games of these rules, which may differ in komi.
            keys: uint64 [B].
            simulations: for each; 0 = none, the network's policy is the answer.
            stop: asked again and again; ends the search when it returns True, with what has been found by then.
        """
        if simulations == 0:
            return self._settle(env, self._policy_alone(env), None, {})
        # Batches are padded to a few sizes, whose memory is kept, by finished games, which cost nothing.
        size, batch = 1 << (env.batch_size - 1).bit_length(), env.batch_size
        games = BatchEnv(self._rules, size)
        states = np.repeat(self._finished, size, axis=0)
        states[:batch] = env.gather()
        games.scatter(None, states)
        padded = np.zeros(size, np.uint64)
        padded[:batch] = keys
        search = self._searches.get((size, simulations))
        if search is None:
            node = _node_bytes(self._rules)
            if node * sum(s * (n + 1) for s, n in [*self._searches, (size, simulations)]) > _MOST_BYTES:
                self._searches.clear()
            search = self._new_search(simulations, self.leaves_for(simulations), size)
            self._searches[size, simulations] = search
        result = search.run(games, padded, stop)
        nodes = self._solver_nodes
        if nodes is None:
            each = _SOLVER_NODES if simulations >= _MANY_SIMULATIONS else _FEW_SOLVER_NODES
            nodes = min(each * simulations, _MOST_SOLVER_NODES)
        return self._settle(env, result, search, self._solutions(env, nodes))

    def run_timed(
        self, env: BatchEnv, keys: UInt64Array, seconds: float, stop: Callable[[], bool] | None = None
    ) -> Thought:
        """Search one game for so long, going on with what is kept of the search before.

        Args:
            env: one running game.
            keys: uint64 [1].
            stop: see `run`.
        """
        deadline = time.perf_counter() + seconds

        def ended() -> bool:
            return time.perf_counter() >= deadline or (stop is not None and stop())

        share = _SOLVER_SHARE * seconds
        nodes = 0 if self._solver_nodes == 0 else int(min(_SOLVER_SPEED * share, _MOST_SOLVER_NODES))
        solutions = self._solutions(env, nodes, share)
        if self._kept is None:
            leaves = self.leaves_for(_TIMED_SIMULATIONS)
            self._kept = self._new_search(_FIRST_SIMULATIONS, leaves, reuse=self._search == "puct")
        search, node, count = self._kept, _node_bytes(self._rules), _FIRST_SIMULATIONS
        result = SearchResult.empty(1, env.num_actions)
        while True:
            search.num_simulations = count
            latest = search.run(env, keys, ended)
            if self._search == "puct" or latest.visit_counts.sum() >= result.visit_counts.sum():
                result = latest  # Gumbel search begins anew each time, and may have been cut off early
            solved = 0 in solutions and solutions[0].value is not None
            if solved or abs(float(result.root_value[0])) == 1.0 or env.legal_action_mask[0].sum() == 1:
                break
            if ended() or 2 * (search.num_nodes + count) * node > _MOST_BYTES:
                break
            count = min(2 * count, 1024)
        return self._settle(env, result, search, solutions)

    def _policy_alone(self, env: BatchEnv) -> SearchResult:
        logits, values = self._evaluator.evaluate(env)
        result = SearchResult.empty(env.batch_size, env.num_actions)
        masked = np.where(env.legal_action_mask, logits, -np.inf)
        weights = np.exp(masked - masked.max(axis=1, keepdims=True))
        result.policy_target[...] = weights / weights.sum(axis=1, keepdims=True)
        result.actions[...] = masked.argmax(axis=1)
        result.root_value[...] = np.clip(values, -1, 1)
        result.action_values[...] = result.root_value[:, None]
        return result

    def _solutions(self, env: BatchEnv, nodes: int, seconds: float | None = None) -> dict[int, Solution]:
        """What the solver says of each game that it is asked about, within these limits for each."""
        found = {}
        for row in np.flatnonzero(env.legal_action_mask.sum(axis=1) < nodes.bit_length()).tolist():
            if self._solver is None:
                self._solver = Solver(self._rules, _SOLVER_TABLE_BITS, symmetric=False)
            self._solver.forget()  # what was asked before must not matter
            found[row] = self._solver.solve_state(env.gather(np.array([row]))[0], nodes, seconds)
        return found

    def _settle(
        self,
        env: BatchEnv,
        result: SearchResult,
        search: BatchSearch | None,
        solutions: dict[int, Solution],
    ) -> Thought:
        """Put together what search and solver say."""
        batch = env.batch_size
        best, values = result.actions[:batch].copy(), result.action_values[:batch].copy()
        visits, policy = result.visit_counts[:batch], result.policy_target[:batch]
        prior = policy if search is None else search.root_prior[:batch].copy()
        solved = np.zeros(batch, np.int8)
        for row, found in solutions.items():
            solved[row] = found.value or 0
            known_lost = env.legal_action_mask[row].copy()
            known_lost[[*found.known_winning, *found.undecided]] = False
            values[row, known_lost] = -1.0
            values[row, list(found.known_winning)] = 1.0
            among = found.known_winning or found.undecided
            if among and best[row] not in among:
                best[row] = max(among, key=lambda a: (visits[row, a], prior[row, a], -a))

        def lines() -> list[dict[int, tuple[int, ...]]]:
            out: list[dict[int, tuple[int, ...]]] = [{} for _ in range(batch)]
            if search is not None:
                rows, actions = np.nonzero(visits)
                found = search.principal_variations(rows, actions, _LONGEST_LINE)
                for row, action, line in zip(rows.tolist(), actions.tolist(), found, strict=True):
                    out[row][action] = tuple(line)
            return out

        return Thought(best, result.root_value[:batch], visits, values, policy, prior, solved, lines)


def leaves_for(simulations: int) -> int:
    """Leaves grown at once by PUCT in a search of so many simulations.

    More at once are evaluated faster, and know less of each other: measured, few simulations lose strength by it, many
    do not.
    """
    return 1 if simulations < 256 else 4 if simulations < 1024 else 8


def _node_bytes(rules: Rules) -> int:
    return _NODE_BYTES + rules.num_actions * _ACTION_BYTES


def games_at_once(rules: Rules, simulations: int) -> int:
    """Games that can be searched together without more memory than is kept, at least 1."""
    return max(1, _MOST_BYTES // (_node_bytes(rules) * (simulations + 1)))
