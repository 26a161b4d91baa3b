"""Elo ratings of players from games played in pairs, with intervals that know of the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

Floats = npt.NDArray[np.float64]

ELO = float(np.log(10) / 400)
"""Log-odds of a win for each point of Elo."""

_QUANTILE = 1.959964


@dataclass(frozen=True)
class Pair:
    """Games of one opening between two players, seats exchanged from one to the next; the unit of chance.

    Attributes:
        first, second: the players.
        results: for each game, whether `first` had seat 0, and whether `first` won.
    """

    first: str
    second: str
    results: tuple[tuple[bool, bool], ...]


@dataclass(frozen=True)
class Rating:
    """A player's rating in Elo, with its 95 % interval and the games it rests on."""

    elo: float
    low: float
    high: float
    games: int


@dataclass(frozen=True)
class Ratings:
    """A fit.

    Attributes:
        players: the rating of each.
        first_seat: advantage of seat 0, in Elo.
    """

    players: dict[str, Rating]
    first_seat: float


def fit_ratings(
    pairs: Sequence[Pair],
    anchor: str,
    rng: np.random.Generator,
    prior_sd: float = 1500.0,
    resamples: int = 300,
) -> Ratings:
    """Ratings by penalised logistic regression, a term for the first seat in it.

    The intervals come from fits to pairs drawn anew, with replacement. Where a player has won or lost all its games
    that says nothing, all draws being alike: there they are at least those of the fit's own curvature.

    Args:
        pairs: at least one.
        anchor: the player whose rating is 0; it need not have played.
        rng: draws the resamples.
        prior_sd: standard deviation of the ratings' Gaussian prior round the anchor, in Elo: keeps what won all its
            games finite.
        resamples: fits to pairs drawn anew.
    """
    names = sorted({anchor, *(name for p in pairs for name in (p.first, p.second))})
    index = {name: i for i, name in enumerate(names)}
    problem = _Problem(pairs, index, index[anchor], prior_sd * ELO)
    best, covariance = problem.fit(problem.counts(np.ones(len(pairs))))
    draws = np.array([problem.fit(problem.counts(_resample(len(pairs), rng)), best)[0] for _ in range(resamples)])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    spread = _QUANTILE * np.sqrt(np.diag(covariance))
    games, wins = problem.totals()
    one_sided = (wins == 0) | (wins == games)
    low[:-1] = np.where(one_sided, np.minimum(low[:-1], best[:-1] - spread[:-1]), low[:-1])
    high[:-1] = np.where(one_sided, np.maximum(high[:-1], best[:-1] + spread[:-1]), high[:-1])
    players = {
        name: Rating(best[i] / ELO, low[i] / ELO, high[i] / ELO, int(games[i]))
        if name != anchor
        else Rating(0, 0, 0, int(games[i]))
        for name, i in index.items()
    }
    return Ratings(players, best[-1] / ELO)


def _sums(cells: npt.NDArray[np.int64], values: Floats, size: int) -> Floats:
    """The sum of the values in each of so many cells."""
    return np.asarray(np.bincount(cells, values, size), np.float64)


def _resample(count: int, rng: np.random.Generator) -> Floats:
    """How often each of so many pairs is drawn in as many draws with replacement."""
    return np.bincount(rng.integers(0, count, count), minlength=count).astype(np.float64)


class _Problem:
    """Games counted by (player in seat 0, player in seat 1); parameters: log-odds ratings, then the first seat's."""

    def __init__(self, pairs: Sequence[Pair], index: dict[str, int], anchor: int, prior_sd: float) -> None:
        self.players, self._anchor, self._prior = len(index), anchor, 1 / prior_sd**2
        rows = []
        for number, pair in enumerate(pairs):
            a, b = index[pair.first], index[pair.second]
            rows += [(number, a, b, won) if seat else (number, b, a, not won) for seat, won in pair.results]
        self._pair, black, white, won = np.array(rows, np.int64).T
        self._won = won.astype(bool)
        cells, self._cell = np.unique(black * self.players + white, return_inverse=True)
        self._black, self._white = cells // self.players, cells % self.players

    def counts(self, weights: Floats) -> tuple[Floats, Floats]:
        """Games and wins of seat 0 in each cell, each pair counted so often."""
        by_game = weights[self._pair]
        size = len(self._black)
        return _sums(self._cell, by_game, size), _sums(self._cell, by_game * self._won, size)

    def totals(self) -> tuple[Floats, Floats]:
        """Games and wins of each player."""
        games, wins = self.counts(np.ones(self._pair.max() + 1))
        return self._by_player(games, games), self._by_player(wins, games - wins)

    def _by_player(self, black: Floats, white: Floats) -> Floats:
        """Sum over the cells of what each gives to its two players."""
        return _sums(self._black, black, self.players) + _sums(self._white, white, self.players)

    def fit(
        self,
        counts: tuple[Floats, Floats],
        start: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """The best parameters and the inverse curvature there."""
        games, wins = counts
        size = self.players + 1
        penalty = np.full(size, self._prior)
        penalty[self._anchor] = 1e9  # holds the anchor at 0

        def odds(x: Floats) -> Floats:
            return np.asarray(x[self._black] - x[self._white] + x[-1])

        def loss(x: Floats) -> tuple[float, Floats]:
            z = odds(x)
            value = float((games * np.logaddexp(0, z) - wins * z).sum() + 0.5 * (penalty * x * x).sum())
            slope = games * expit(z) - wins
            gradient = penalty * x
            gradient[:-1] += np.bincount(self._black, slope, self.players) - np.bincount(
                self._white, slope, self.players
            )
            gradient[-1] += slope.sum()
            return value, gradient

        def curvature(x: Floats) -> Floats:
            p = expit(odds(x))
            weight = games * p * (1 - p)
            out = np.diag(penalty)
            last = np.full(len(weight), size - 1)
            for sign, rows, columns in (
                (1, self._black, self._black),
                (1, self._white, self._white),
                (-1, self._black, self._white),
                (-1, self._white, self._black),
                (1, self._black, last),
                (1, last, self._black),
                (-1, self._white, last),
                (-1, last, self._white),
                (1, last, last),
            ):
                np.add.at(out, (rows, columns), sign * weight)
            return out

        found = minimize(
            loss, np.zeros(size) if start is None else start, jac=True, hess=curvature, method="trust-exact"
        )
        best: Floats = found.x
        return best, np.asarray(np.linalg.inv(curvature(best)), np.float64)
