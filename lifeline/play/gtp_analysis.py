"""What a network's search thinks of a position, told again and again as it learns more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lifeline.env import BatchEnv
from lifeline.notation import action_text
from lifeline.play.players import NetworkPlayer
from lifeline.rules import Position
from lifeline.search.policy import SearchResult
from lifeline.search.search import BatchSearch

FIRST_SIMULATIONS = 16
MOST_SIMULATIONS = 4096


@dataclass(frozen=True)
class Analysis:
    """Searches of one position, each with twice the simulations of the one before.

    Attributes:
        player: whose search it is.
        position: running.
        interval: the least number of seconds between two lines.
    """

    player: NetworkPlayer
    position: Position
    interval: float

    def lines(self, arrived: Callable[[float], bool]) -> Iterator[str]:
        """A line for each search, the first one in any case; after the last one it waits silently.

        Args:
            arrived: waits for so many seconds at most, and tells whether the analysis is to end.
        """
        env, count = BatchEnv(self.position.rules, 1), FIRST_SIMULATIONS
        env.reset(positions=[self.position])
        search, keys = self.player.new_search(count), np.zeros(1, np.uint64)
        result = search.run(env, keys)
        while True:
            shown = time.monotonic()
            yield info_line(search, result, self.position)
            if count >= MOST_SIMULATIONS:
                break
            count *= 2
            search = self.player.new_search(count)
            result = search.run(env, keys, stop=lambda: arrived(0.0))
            if arrived(max(0.0, shown + self.interval - time.monotonic())):
                return
        while not arrived(3600.0):
            pass


def info_line(search: BatchSearch, result: SearchResult, position: Position) -> str:
    """The moves that a search of a position visited, the one it would play first.

    Args:
        search: of one game, as it ended.
        result: what it came to.
        position: what it has searched, running.
    """
    visits, values, prior = result.visit_counts[0], result.action_values[0], search.root_prior[0]
    order = sorted(
        np.flatnonzero(visits).tolist(), key=lambda a: (a != result.actions[0], -visits[a], -values[a], -prior[a], a)
    )
    geometry = position.rules.board
    return " ".join(
        f"info move {action_text(a, geometry)} visits {visits[a]} winrate {(1 + values[a]) / 2:.4f} "
        f"prior {prior[a]:.4f} order {place} pv "
        + " ".join(action_text(ply, geometry) for ply in search.principal_variation(0, a))
        for place, a in enumerate(order)
    )
