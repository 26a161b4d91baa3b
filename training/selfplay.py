"""Games from a model: many at once in one environment, finished ones replaced."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.rules import Rules
from lifeline.search.evaluator import Evaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.search import BatchSearch
from lifeline.streams import derive, draw_keys
from training.config import SearchConfig, SelfPlayConfig
from training.trajectory import PLY_FIELDS, Trajectory

log = logging.getLogger(__name__)


class SelfPlay:
    """B games that go on for ever. Each game's randomness hangs on its own key: neighbours do not matter.

    Args:
        rules: what is played.
        config: how games are made.
        search: how moves are searched.
        evaluator: judges positions; `use` exchanges it.
        rng: draws the keys of the games.
    """

    def __init__(
        self, rules: Rules, config: SelfPlayConfig, search: SearchConfig, evaluator: Evaluator, rng: np.random.Generator
    ) -> None:
        batch = config.batch_size
        self._config = config
        self._rng = rng
        self._ply_cap = config.ply_cap or 4 * rules.num_cells
        self._env = BatchEnv(rules, batch)
        constants = GumbelConstants(search.max_considered, search.c_visit, search.c_scale)
        self._search = BatchSearch(
            lambda: BatchEnv(rules, batch), evaluator, GumbelPolicy(constants), search.num_simulations
        )
        self._keys = np.zeros(batch, np.uint64)
        self._plies = np.zeros(batch, np.int64)
        self._random_plies = np.zeros(batch, np.int64)
        self._allocate(2 * rules.num_cells)
        self.games_dropped = 0
        self.version = 0
        self._begun = False  # games are drawn when the first are needed, or come from `load_state`

    def _allocate(self, length: int) -> None:
        """Make room for `length` plies of each game, keeping what is recorded."""
        batch, actions, state = self._env.batch_size, self._env.num_actions, self._env.gather(np.zeros(1, np.int64))
        shapes = {"states": state.shape[1:], "policy_targets": (actions,)}
        new = {name: np.zeros((batch, length, *shapes.get(name, ())), dtype) for name, dtype in PLY_FIELDS.items()}
        for name, array in getattr(self, "_record", {}).items():
            new[name][:, : array.shape[1]] = array
        self._record: dict[str, npt.NDArray[Any]] = new

    def _start(self, rows: npt.NDArray[np.int64]) -> None:
        """Begin new games in some rows, a share of them from random first turns."""
        self._env.reset(rows)
        keys = draw_keys(self._rng, len(rows))
        self._keys[rows] = keys
        self._plies[rows] = 0
        first = derive(keys, np.zeros(len(rows), np.int64))
        states = self._env.gather(rows)
        for i, row in enumerate(rows):
            self._random_plies[row], states[i] = self._opening(first[i], states[i])
        self._env.scatter(rows, states)

    def _opening(self, key: np.uint64, start: npt.NDArray[Any]) -> tuple[int, npt.NDArray[Any]]:
        """Where a game starts: mostly at its start, else after one or both players' random first turns."""
        rng = np.random.default_rng(key)
        if rng.random() >= self._config.random_opening_share:
            return 0, start
        env = BatchEnv(self._env.rules, 1)
        env.scatter(None, start[None])
        turns = int(rng.integers(1, 3))
        plies = 0
        while (position := env.position(0)).turn < turns:
            # No swap: from here on it is still open, or was declined.
            cells = np.flatnonzero(env.legal_action_mask[0, : position.rules.num_cells])
            env.step(rng.choice(cells, size=1))
            plies += 1
        return plies, env.gather()[0]

    def use(self, evaluator: Evaluator, version: int) -> None:
        """Judge positions by another evaluator from now on, in games under way as well.

        Args:
            version: of its weights, noted in the games that end with them.
        """
        self._search.evaluator, self.version = evaluator, version

    def play(self, plies: int) -> list[Trajectory]:
        """Play so many plies of every game and return those that ended, in the order they ended."""
        if not self._begun:
            self._start(np.arange(self._env.batch_size))
            self._begun = True
        finished = []
        for _ in range(plies):
            finished += self._ply()
        return finished

    def _ply(self) -> list[Trajectory]:
        rows, at = np.arange(self._env.batch_size), self._plies
        if at.max() >= self._record["states"].shape[1]:
            self._allocate(2 * self._record["states"].shape[1])
        result = self._search.run(self._env, derive(self._keys, at + 1))
        for name, values in (
            ("states", self._env.gather()),
            ("policy_targets", result.policy_target),
            ("root_values", result.root_value),
            ("to_play", self._env.to_play),
            ("actions", result.actions),
        ):
            self._record[name][rows, at] = values
        self._env.step(result.actions)
        self._plies += 1
        ended = np.flatnonzero(self._env.terminated)
        finished = [self._trajectory(int(row)) for row in ended]
        capped = np.flatnonzero((self._plies >= self._ply_cap) & ~self._env.terminated)
        for row in capped:
            self.games_dropped += 1
            log.warning(
                "a game reached the cap of %d plies and was dropped: %s",
                self._ply_cap,
                self._env.position(int(row)).text(),
            )
        over = np.concatenate([ended, capped])
        if len(over):
            self._start(over)
        return finished

    def _trajectory(self, row: int) -> Trajectory:
        length = int(self._plies[row])
        return Trajectory(
            **{name: array[row, :length].copy() for name, array in self._record.items()},
            outcome=int(self._env.outcome[row]),
            random_plies=int(self._random_plies[row]),
            game_id=int(self._keys[row]),
            version=self.version,
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All that is needed to go on: the unfinished games, by name. The generator is the caller's to keep."""
        longest = max(1, int(self._plies.max()))
        played = np.arange(longest) < self._plies[:, None]
        return {
            "env": self._env.gather(),
            "keys": self._keys.copy(),
            "plies": self._plies.copy(),
            "random_plies": self._random_plies.copy(),
            "dropped": np.array([self.games_dropped]),
            # Behind the plies of a game lie those of games before it: blank, so that equal runs have equal states.
            **{
                f"record_{name}": np.where(
                    played.reshape(*played.shape, *(1,) * (array.ndim - 2)), array[:, :longest], 0
                )
                for name, array in self._record.items()
            },
        }

    def load_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        self._begun = True
        longest = state["record_states"].shape[1]
        if longest > self._record["states"].shape[1]:
            self._allocate(longest)
        for name, array in self._record.items():
            array[:, :longest] = state[f"record_{name}"]
        self._env.scatter(None, state["env"])
        self._keys[...], self._plies[...] = state["keys"], state["plies"]
        self._random_plies[...] = state["random_plies"]
        self.games_dropped = int(state["dropped"][0])


def streams_of(seed: int, names: tuple[str, ...]) -> dict[str, np.random.Generator]:
    """Independent generators for the parts of a run, all from one seed."""
    sequences = np.random.SeedSequence(seed).spawn(len(names))
    return {name: np.random.default_rng(s) for name, s in zip(names, sequences, strict=True)}
