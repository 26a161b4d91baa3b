"""Pairs of games as counts, and what those counts might as well have been: where intervals come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Results = tuple[tuple[bool, bool], ...]

# Both games played, seats exchanged: the first wins none, the one with seat 0, the one with seat 1, both.
_FULL: tuple[Results, ...] = tuple(((True, a), (False, b)) for a in (False, True) for b in (False, True))


@dataclass(frozen=True)
class Pair:
    """Games of one opening between two players, seats exchanged from one to the next; the unit of chance.

    Attributes:
        first, second: the players.
        results: for each game, whether `first` had seat 0, and whether `first` won.
    """

    first: str
    second: str
    results: Results


@dataclass(frozen=True)
class Meeting:
    """All pairs of two players, those of equal results counted together.

    Attributes:
        first, second: the players, in alphabetical order.
        kinds: float64 [K, 4], what a pair of each kind holds: games with `first` in seat 0, those of them that seat 0
            won, games with `second` in seat 0, those of them that seat 0 won. The first four kinds are the full pairs.
        counts: float64 [K], pairs of each kind.
    """

    first: str
    second: str
    kinds: Floats
    counts: Floats

    @property
    def totals(self) -> Floats:
        """float64 [4], the columns of `kinds` summed over all pairs."""
        return self.counts @ self.kinds

    @property
    def games(self) -> int:
        """Games played."""
        return int(self.totals[0] + self.totals[2])

    @property
    def wins(self) -> int:
        """Games won by the first."""
        return int(self.totals[1] + self.totals[2] - self.totals[3])

    @property
    def pairs(self) -> tuple[int, int, int]:
        """Full pairs in which the first won no game, one, or both."""
        none, one, other, both = self.counts[:4]
        return int(none), int(one + other), int(both)

    def draw(self, rng: np.random.Generator, draws: int, prior_pairs: float) -> Floats:
        """Totals of as many pairs, had chance fallen otherwise: a Bayesian bootstrap with a weak prior.

        The shares of the kinds are drawn from a Dirichlet distribution round those seen, so that what always happened
        is not taken for certain.

        Args:
            draws: D, how often.
            prior_pairs: weight of the prior in pairs, > 0, spread evenly over the four kinds of full pairs.
        Returns:
            float64 [D, 4], columns as in `kinds`.
        Source: Rubin 1981, The Bayesian bootstrap.
        """
        weights = self.counts.copy()
        weights[:4] += prior_pairs / 4
        # Makes the spread that of n - 1 degrees of freedom, which matters where there are few pairs.
        weights *= (pairs := self.counts.sum()) / (pairs + prior_pairs + 2)
        shares = rng.standard_gamma(weights, (draws, len(weights)))
        return np.asarray(shares @ self.kinds * (pairs / shares.sum(axis=1, keepdims=True)), np.float64)


def meetings(pairs: Iterable[Pair]) -> list[Meeting]:
    """The pairs of each two players that met, in alphabetical order; pairs without a game are left out."""
    found: dict[tuple[str, str], Counter[Results]] = {}
    for pair in pairs:
        names, results = (pair.first, pair.second), pair.results
        if pair.second < pair.first:
            names, results = (pair.second, pair.first), tuple((not seat, not won) for seat, won in results)
        if results:
            # A pair is the same whichever of its games was played first.
            found.setdefault(names, Counter())[tuple(sorted(results, reverse=True))] += 1
    out = []
    for (first, second), counted in sorted(found.items()):
        kinds = [*_FULL, *(k for k in sorted(counted) if k not in _FULL)]
        table = np.array([_holds(kind) for kind in kinds], np.float64)
        out.append(Meeting(first, second, table, np.array([counted[k] for k in kinds], np.float64)))
    return out


def _holds(results: Results) -> list[int]:
    black, white = [won for seat, won in results if seat], [won for seat, won in results if not seat]
    return [len(black), sum(black), len(white), len(white) - sum(white)]
