"""Game clocks, and how much of them a move may take."""

from __future__ import annotations

from dataclasses import dataclass, replace

# Part of what is left that is never planned with, and seconds for the way to the controller and back.
_RESERVE = 0.1
_LAG = 0.05
# Own plies that are always reckoned with, however full the board: captures make room again.
_LEAST_PLIES = 2


@dataclass(frozen=True)
class TimeSettings:
    """The argument of `time_settings`.

    Attributes:
        main: seconds of main time, >= 0.
        period: seconds of a byo-yomi period, >= 0.
        stones: to be placed in each period; 0 = there are none, or no limit at all if `period` is above 0.
    """

    main: float
    period: float
    stones: int

    @property
    def unlimited(self) -> bool:
        """Whether this is GTP's way of saying that there is no limit."""
        return self.period > 0 and self.stones == 0

    @property
    def has_byo_yomi(self) -> bool:
        """Whether the game goes on after the main time."""
        return self.period > 0 and self.stones > 0


@dataclass(frozen=True)
class Clock:
    """The clock of one colour. Immutable.

    Attributes:
        settings: what is played by; limited.
        left: seconds left of the main time or of this period, >= 0.
        stones: to be placed in this period; 0 in main time.
    """

    settings: TimeSettings
    left: float
    stones: int

    @classmethod
    def start(cls, settings: TimeSettings) -> Clock:
        """The clock as a game begins."""
        if settings.main == 0 and settings.has_byo_yomi:
            return cls(settings, settings.period, settings.stones)
        return cls(settings, settings.main, 0)

    def spend(self, seconds: float) -> Clock:
        """The clock after a ply that took so long. A ply that outlasts the main time is the first of a period."""
        left, stones = self.left - seconds, self.stones
        if stones == 0:
            if left > 0 or not self.settings.has_byo_yomi:
                return replace(self, left=max(0.0, left))
            left, stones = self.settings.period + left, self.settings.stones
        if stones == 1:
            return replace(self, left=self.settings.period, stones=self.settings.stones)
        return replace(self, left=max(0.0, left), stones=stones - 1)


def allotment(clock: Clock, empty_cells: int) -> float:
    """Seconds for the next ply.

    In byo-yomi an equal share of the period. In main time an equal share by the own plies that are still expected,
    about half the empty cells; where byo-yomi follows, at least what a ply of a period gets.

    Args:
        empty_cells: of the board now.
    Returns:
        At least 0. At most what is left, or a period's share where byo-yomi follows the main time.
    """
    if clock.stones > 0:
        return _usable(clock.left) / clock.stones
    share = _usable(clock.left) / (_LEAST_PLIES + empty_cells // 2)
    if clock.settings.has_byo_yomi:
        return max(share, _usable(clock.settings.period) / clock.settings.stones)
    return share


def _usable(seconds: float) -> float:
    return max(0.0, seconds * (1 - _RESERVE) - _LAG)
