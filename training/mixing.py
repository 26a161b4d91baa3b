"""Self-play on several sizes of board with one set of weights, each size getting its share of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.search.evaluator import Evaluator
from training.config import Config
from training.selfplay import SelfPlay
from training.trajectory import Trajectory


class MixedPlay:
    """The self-play of one worker, of one or more sizes.

    The sizes take turns, so that all games of a batch are of one board: always the one that is furthest behind its
    share is played.

    Args:
        config: of the run.
        evaluator: judges positions; `use` exchanges it.
        rng: draws the keys of the games.
        on_gpu: whether the evaluator runs on a GPU.
    """

    def __init__(self, config: Config, evaluator: Evaluator, rng: np.random.Generator, on_gpu: bool = False) -> None:
        self._config = config
        self._sizes = config.game.sizes()
        self._parts = [SelfPlay(rules, config.selfplay, config.search, evaluator, rng, on_gpu) for rules in self._sizes]
        self._shares = np.array(list(self._sizes.values()))
        self._played = np.zeros(len(self._parts))
        self._version = 0

    @property
    def evaluations(self) -> int:
        """Positions judged."""
        return sum(part.evaluations for part in self._parts)

    @property
    def games_dropped(self) -> int:
        """Games dropped at the ply cap."""
        return sum(part.games_dropped for part in self._parts)

    def use(self, evaluator: Evaluator, version: int) -> None:
        """Judge positions by another evaluator from now on; see `SelfPlay.use`."""
        for part in self._parts:
            part.use(evaluator, version)
        self._version = version

    def play(self, plies: int) -> list[Trajectory]:
        """Play so many plies of every game of one size and return those that ended."""
        joined = self._config.game.joined(self._version)
        at = int(np.argmin(self._played[:joined] / self._shares[:joined]))
        if self._played[at] == 0:
            # One that joins late does not catch up on what it has missed.
            self._played[at] = self._shares[at] * max(self._played[:joined] / self._shares[:joined])
        self._played[at] += plies
        return self._parts[at].play(plies)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All that is needed to go on, by name; see `SelfPlay.state`."""
        out = {"played": self._played.copy()}
        for rules, part in zip(self._sizes, self._parts, strict=True):
            out |= {f"base{rules.base}.{name}": array for name, array in part.state().items()}
        return out

    def load_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        self._played[...] = state["played"]
        for rules, part in zip(self._sizes, self._parts, strict=True):
            prefix = f"base{rules.base}."
            part.load_state({n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)})
