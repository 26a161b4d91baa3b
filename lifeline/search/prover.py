"""Exact values inside a search: the solver at leaves near the end of the game."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.rules import Rules
from lifeline.search.evaluator import Env
from lifeline.solver import Solver


class SolverProver:
    """Solves leaves with few legal actions, as far as a few positions of search suffice.

    Args:
        rules: what is played.
        max_actions: legal actions up to which a leaf is looked at.
        max_nodes: positions searched for a leaf, at most.
    """

    def __init__(self, rules: Rules, max_actions: int = 10, max_nodes: int = 2_000) -> None:
        self._solver, self._max_actions, self._max_nodes = Solver(rules, table_bits=18), max_actions, max_nodes

    def prove(self, leaves: Env) -> npt.NDArray[np.int8]:
        """See `Prover.prove`."""
        known = np.zeros(leaves.batch_size, np.int8)
        counts = leaves.legal_action_mask.sum(axis=1)
        rows = np.flatnonzero((counts > 0) & (counts <= self._max_actions))
        for row, state in zip(rows, leaves.gather(rows), strict=True):
            known[row] = self._solver.value(state, self._max_nodes)
        return known
