"""Komi pie before the game: which komi its first player names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lifeline.errors import ConfigError
from lifeline.rules import MAX_KOMI, Position, Rules

# Of those the model alone holds for most even, so many are searched.
_SEARCHED = 5

Judge = Callable[[Sequence[Position], int], Sequence[float]]
"""Values of positions, for the player to move, by so many simulations of each; 0 = the model alone."""


@dataclass(frozen=True)
class KomiChoice:
    """A komi that was named.

    Attributes:
        komi: the one whose value is nearest to even.
        value: of the start with it, for Black.
        values: by komi, of all that were looked at: by search where there was one.
    """

    komi: int
    value: float
    values: dict[int, float]


def name_komi(rules: Rules, judge: Judge, simulations: int, most: int | None = None) -> KomiChoice:
    """The komi whose value is nearest to even, the least of several.

    All are judged by the model alone, the most even of them by search.

    Args:
        rules: komi pie; their own komi is of no account.
        judge: knows values.
        simulations: of each search; 0 = none.
        most: the greatest komi to consider, 0..99; None = half the cells of the board.

    Raises:
        ConfigError: another opening, or `most` out of range.
    """
    if rules.opening != "komi_pie":
        raise ConfigError(f"a komi is named in komi_pie, not in {rules.opening}")
    limit = min(MAX_KOMI, rules.num_cells // 2) if most is None else most
    if not 0 <= limit <= MAX_KOMI:
        raise ConfigError(f"a komi is 0 to {MAX_KOMI}, not {limit}")
    starts = [Position.start(replace(rules, komi=komi)) for komi in range(limit + 1)]
    values = dict(enumerate(judge(starts, 0)))
    nearest = sorted(values, key=lambda komi: (abs(values[komi]), komi))[:_SEARCHED]
    if simulations:
        values |= dict(zip(nearest, judge([starts[komi] for komi in nearest], simulations), strict=True))
    komi = min(nearest, key=lambda komi: (abs(values[komi]), komi))
    return KomiChoice(komi, values[komi], values)
