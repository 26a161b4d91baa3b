"""Elo ratings of players from games played in pairs, with intervals that know of the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from training.resampling import Floats, Meeting, Pair, meetings

__all__ = ["ELO", "Pair", "Rating", "Ratings", "fit_ratings"]

ELO = float(np.log(10) / 400)
"""Log-odds of a win for each point of Elo."""

_MAX_STEPS = 500
_EXACT = 1e-9  # in log-odds: a millionth of a point of Elo


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
        first_seat: advantage of seat 0, in Elo; first_seat_low, first_seat_high: its 95 % interval.
    """

    players: dict[str, Rating]
    first_seat: float
    first_seat_low: float
    first_seat_high: float


def fit_ratings(
    pairs: Sequence[Pair],
    anchor: str,
    rng: np.random.Generator,
    prior_sd: float = 1500.0,
    resamples: int = 1000,
) -> Ratings:
    """Ratings by penalised logistic regression, a term for the first seat in it.

    The intervals come from fits to results drawn anew, pair by pair (`Meeting.draw`), each under a prior that is drawn
    anew too: where all games were won by one side, the results bound the interval on one side and the prior on the
    other. The weight of results that were not seen is one game for each parameter, which is that of Jeffreys' prior.

    Args:
        pairs: at least one game.
        anchor: the player whose rating is 0; it need not have played.
        rng: draws the resamples.
        prior_sd: standard deviation of the Gaussian prior of ratings and first seat round 0, in Elo: keeps what won all
            its games finite.
        resamples: fits to results drawn anew.
    Source: Firth 1993, Bias reduction of maximum likelihood estimates (the weight); Newton and Raftery 1994,
        Approximate Bayesian inference with the weighted likelihood bootstrap.
    """
    met = meetings(pairs)
    names = sorted({anchor, *(name for m in met for name in (m.first, m.second))})
    free = [name for name in names if name != anchor]
    design, sd = _design(met, free), prior_sd * ELO
    best = _fit(design, np.array([[m.totals for m in met]]), np.zeros((1, len(free) + 1)), sd)[0]
    weight = len(names) / 2 / len(met)
    drawn = np.stack([m.draw(rng, resamples, weight) for m in met], axis=1)
    draws = _fit(design, drawn, rng.normal(0, sd, (resamples, len(best))), sd, best)
    rows = np.stack([best, *np.quantile(draws, [0.025, 0.975], axis=0)], axis=1) / ELO
    games = dict.fromkeys(names, 0)
    for m in met:
        games[m.first] += m.games
        games[m.second] += m.games
    players = {anchor: Rating(0.0, 0.0, 0.0, games[anchor])}
    for name, (elo, low, high) in zip(free, rows[:-1].tolist(), strict=True):
        players[name] = Rating(elo, low, high, games[name])
    return Ratings({name: players[name] for name in names}, *rows[-1].tolist())


def _design(met: Sequence[Meeting], free: Sequence[str]) -> Floats:
    """float64 [2 M, P]: who plays in seat 0 (1) and in seat 1 (-1), and seat 0 itself, two rows for each meeting."""
    out = np.zeros((2 * len(met), len(free) + 1))
    out[:, -1] = 1
    column = {name: i for i, name in enumerate(free)}
    for row, m in enumerate(met):
        for name, sign in ((m.first, 1), (m.second, -1)):
            if name in column:
                out[2 * row : 2 * row + 2, column[name]] = (sign, -sign)
    return out


def _fit(design: Floats, totals: Floats, centres: Floats, prior_sd: float, start: Floats | None = None) -> Floats:
    """The best parameters in log-odds for each of R sets of results, by Newton's method.

    Args:
        design: float64 [2 M, P].
        totals: float64 [R, M, 4]; see `Meeting.kinds`.
        centres: float64 [R, P], the means of the prior.
        start: float64 [P], where to begin; 0 if None.
    Returns:
        float64 [R, P].
    """
    rows, (cells, size) = len(totals), design.shape
    games, wins = totals[:, :, 0::2].reshape(rows, cells), totals[:, :, 1::2].reshape(rows, cells)
    squares = (design[:, :, None] * design[:, None, :]).reshape(cells, -1)
    precision = 1 / prior_sd**2
    x = np.tile(np.zeros(size) if start is None else start, (rows, 1))
    for _ in range(_MAX_STEPS):
        p = expit(x @ design.T)
        gradient = (wins - games * p) @ design - precision * (x - centres)
        curvature = (games * p * (1 - p) @ squares).reshape(rows, size, size) + precision * np.eye(size)
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        # Steps that move no game's log-odds by more than 1 cannot miss: Bach 2010, Self-concordant analysis for
        # logistic regression.
        moved = np.abs(step @ design.T).max(axis=1, keepdims=True)
        x += step / np.maximum(moved, 1)
        if moved.max() < _EXACT:
            break
    return x
