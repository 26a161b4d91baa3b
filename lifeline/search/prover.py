"""Exact values inside a search: the solver at leaves near the end of the game."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.rules import Rules
from lifeline.search.evaluator import Env
from lifeline.solver import Solver


class SolverProver:
    """Solves leaves with few legal actions where a few positions of search suffice, each as if it were the only one.

    Args:
        rules: what is played.
        max_actions: legal actions up to which a leaf is looked at. Two to the power of that are the positions searched
            for it, which solves most.
    """

    def __init__(self, rules: Rules, max_actions: int = 6) -> None:
        self._solver, self._max_actions = Solver(rules, max_actions + 2, symmetric=False), max_actions

    def prove(self, leaves: Env) -> npt.NDArray[np.int8]:
        """See `Prover.prove`."""
        known = np.zeros(leaves.batch_size, np.int8)
        counts = leaves.legal_action_mask.sum(axis=1)
        rows = np.flatnonzero((counts > 0) & (counts <= self._max_actions))
        if len(rows):
            known[rows] = self._solver.values(leaves.gather(rows), 2**self._max_actions)
        return known
