"""A sequential test between two strengths: plays on until the pairs of games decide, and no longer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lifeline.errors import ConfigError
from training.resampling import Floats

MAX_ELO = 1000.0

# Pairs added to each count that shares are made of: keeps the first few pairs, which may all be alike, from looking
# like certainty. Chosen by simulation; see the tests of error rates.
_PRIOR = 0.5
_SCORES = np.array([0.0, 0.5, 1.0])


@dataclass(frozen=True)
class SprtState:
    """A sequential test of "the first player is elo1 better" against "it is elo0 better".

    Attributes:
        elo0, elo1: the two hypotheses.
        llr: log-likelihood ratio so far; lower, upper: where the test ends.
        pairs: it rests on.
        verdict: "elo1 accepted", "elo0 accepted", or "undecided".
    """

    elo0: float
    elo1: float
    llr: float
    lower: float
    upper: float
    pairs: int
    verdict: str


@dataclass(frozen=True)
class Sprt:
    """The test, by the generalised likelihood ratio of the three results of a pair: lost, drawn (one game each), won.

    Attributes:
        elo0, elo1: the hypotheses, -1000 to 1000, elo0 < elo1; Elo is that of the expected score.
        alpha: chance of accepting elo1 where elo0 is true, 0.0001 to 0.4999.
        beta: chance of accepting elo0 where elo1 is true, likewise.

    Raises:
        ConfigError: a value out of range.

    Source: Wald 1945 (the bounds); Van den Bergh, A practical introduction to the GSPRT, and Comments on normalized
        Elo (the likelihood under a given mean).
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        for name in ("elo0", "elo1"):
            if not -MAX_ELO <= getattr(self, name) <= MAX_ELO:  # written so that NaN is out of range
                raise ConfigError(f"{name} must be from -{MAX_ELO:.0f} to {MAX_ELO:.0f}, not {getattr(self, name)}")
        for name in ("alpha", "beta"):
            if not 0.0001 <= getattr(self, name) <= 0.4999:
                raise ConfigError(f"{name} must be from 0.0001 to 0.4999, not {getattr(self, name)}")
        if not self.elo1 - self.elo0 >= 0.1:
            raise ConfigError(f"elo1 must be at least 0.1 above elo0, not {self.elo1} with {self.elo0}")

    @property
    def lower(self) -> float:
        """The log-likelihood ratio at which elo0 is accepted."""
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """The log-likelihood ratio at which elo1 is accepted."""
        return math.log((1 - self.beta) / self.alpha)

    def ratios(self, counts: Floats) -> Floats:
        """The log-likelihood ratio of elo1 to elo0.

        Args:
            counts: float64 [..., 3], pairs lost, drawn and won; any of them may be zero.
        Returns:
            float64 [...], finite.
        """
        padded = counts + _PRIOR
        shares = padded / padded.sum(axis=-1, keepdims=True)
        one, zero = (np.log(_tilt(shares, score_of(elo))) for elo in (self.elo1, self.elo0))
        return np.asarray((counts * (zero - one)).sum(axis=-1), np.float64)

    def state(self, pairs_lost: int, pairs_drawn: int, pairs_won: int) -> SprtState:
        """Where the test stands after so many pairs, taken together."""
        counts = np.array([pairs_lost, pairs_drawn, pairs_won], np.float64)
        return self._state(float(self.ratios(counts)), pairs_lost + pairs_drawn + pairs_won)

    def first_crossing(self, results: Sequence[float]) -> tuple[int, SprtState]:
        """Where the test ends: looked at after each pair, so that it is the same however many come at once.

        Args:
            results: of the pairs in the order they were drawn in, 0, 1/2 or 1 for the first player.
        Returns:
            The number of pairs up to the first that decides, all if none does; and the state after them.
        Raises:
            ConfigError: a result that is none of the three.
        """
        found = np.asarray(results, np.float64)[:, None] == _SCORES if len(results) else np.zeros((0, 3), bool)
        if not found.any(axis=1).all():
            wrong = results[int(np.argmin(found.any(axis=1)))]
            raise ConfigError(f"the result of a pair is 0, 0.5 or 1, not {wrong}")
        llr = self.ratios(np.cumsum(found, axis=0, dtype=np.float64))
        crossed = np.flatnonzero((llr <= self.lower) | (llr >= self.upper))
        pairs = int(crossed[0]) + 1 if len(crossed) else len(found)
        return pairs, self._state(float(llr[pairs - 1]) if pairs else 0.0, pairs)

    def _state(self, llr: float, pairs: int) -> SprtState:
        verdict = "undecided"
        if llr >= self.upper:
            verdict = "elo1 accepted"
        elif llr <= self.lower:
            verdict = "elo0 accepted"
        return SprtState(self.elo0, self.elo1, llr, self.lower, self.upper, pairs, verdict)


def score_of(elo: float) -> float:
    """The expected score of a player so much better, 0 to 1."""
    return 1 / (1 + 10 ** (-elo / 400))


def _tilt(shares: Floats, score: float) -> Floats:
    """What the shares are divided by to become the likeliest ones with this mean: 1 + t (x - score) at each x.

    t makes sum of shares (x - score) / (1 + t (x - score)) zero: with three values of x, a quadratic equation of which
    one root keeps all the divisors positive.
    """
    a = _SCORES - score
    constant = shares @ a
    linear = shares @ (a * (a.sum() - a))
    square = a.prod()
    root = np.sqrt(np.maximum(linear * linear - 4 * square * constant, 0))
    # Both roots in the form that does not cancel: square is zero where score is 1/2.
    far = -linear + root
    t = 2 * constant / far
    return np.asarray(1 + t[..., None] * a, np.float64)
