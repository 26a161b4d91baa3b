"""Search policies by name, as they are used for play: without noise."""

from __future__ import annotations

from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.policy import SearchPolicy
from lifeline.search.puct import PuctPolicy

POLICIES = ("gumbel", "puct")


def quiet_policy(name: str = "gumbel") -> SearchPolicy:
    """A policy of these with its usual constants: the same result every time for the same position."""
    return PuctPolicy() if name == "puct" else GumbelPolicy(GumbelConstants(noise=0.0))
