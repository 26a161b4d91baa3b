"""What a network's search thinks of a position, told again and again as it learns more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lifeline.notation import action_text
from lifeline.play.engine import Analysis, Engine
from lifeline.rules import Position

FIRST_SIMULATIONS = 16
MOST_SIMULATIONS = 4096


@dataclass(frozen=True)
class Telling:
    """Analyses of one position, each with twice the simulations of the one before.

    Attributes:
        engine: whose they are.
        position: running.
        seed: of the game.
        interval: the least number of seconds between two lines.
    """

    engine: Engine
    position: Position
    seed: int
    interval: float

    def lines(self, arrived: Callable[[float], bool]) -> Iterator[str]:
        """A line for each analysis, the first one in any case; after the last one it waits silently.

        Args:
            arrived: waits for so many seconds at most, and tells whether this is to end.
        """
        count = FIRST_SIMULATIONS
        analysis = self.engine.analyse(self.position, self.seed, count)
        while True:
            shown = time.monotonic()
            yield info_line(analysis)
            if count >= MOST_SIMULATIONS:
                break
            count *= 2
            analysis = self.engine.analyse(self.position, self.seed, count, stop=lambda: arrived(0.0))
            if arrived(max(0.0, shown + self.interval - time.monotonic())):
                return
        while not arrived(3600.0):
            pass


def info_line(analysis: Analysis) -> str:
    """The moves of an analysis, the one that would be played first."""
    geometry = analysis.position.rules.board
    return " ".join(
        f"info move {action_text(m.action, geometry)} visits {m.visits} winrate {(1 + m.value) / 2:.4f} "
        f"prior {m.prior:.4f} order {place} pv " + " ".join(action_text(ply, geometry) for ply in m.pv)
        for place, m in enumerate(analysis.moves)
    )
