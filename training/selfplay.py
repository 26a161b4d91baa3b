"""Games from a model: many at once in one environment, finished ones replaced."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.kernels import longest_game
from lifeline.rules import Rules
from lifeline.search.evaluator import Evaluator
from lifeline.search.policy import SearchResult
from lifeline.streams import UInt64Array, derive, draw_keys
from training.backward import BackwardSolver
from training.config import SearchConfig, SelfPlayConfig
from training.drills import Drills
from training.endgames import Endgames
from training.resignation import Resignation
from training.searching import GroupedSearch, num_groups, simulations_at
from training.starts import Starts
from training.straying import Straying
from training.trajectory import PLY_FIELDS, Trajectory

log = logging.getLogger(__name__)

# Shares of the number of cells by which games are varied if nothing else is said.
_VARIED = {"puct": 0.3, "gumbel": 10.0}


class SelfPlay:
    """B games that go on for ever. Each game's randomness hangs on its own key: neighbours do not matter.

    Args:
        rules: what is played.
        config: how games are made.
        search: how moves are searched.
        evaluator: judges positions; `use` exchanges it.
        rng: draws the keys of the games, and which plies are searched in full where not all are.
        on_gpu: whether the evaluator runs on a GPU: then `groups: auto` makes two.

    Attributes:
        games_dropped: at the ply cap.
        evaluations: positions judged.
        solver_seconds: spent on the truth about last plies and on drills.
        version: of the evaluator's weights.
    """

    def __init__(
        self,
        rules: Rules,
        config: SelfPlayConfig,
        search: SearchConfig,
        evaluator: Evaluator,
        rng: np.random.Generator,
        on_gpu: bool = False,
    ) -> None:
        batch = config.batch_size
        self._config, self._search_config = config, search
        self._rng = rng
        self._ply_cap = config.ply_cap or longest_game(rules)
        share = config.temperature_share
        if share is None:
            share = _VARIED[search.policy]
        self._varied = share * rules.num_cells
        self._env = BatchEnv(rules, batch)
        self._search = GroupedSearch(rules, batch, num_groups(config, on_gpu), search, evaluator)
        self._starts = Starts(rules, config)
        self._resignation = Resignation(config, batch)
        solver = BackwardSolver(rules, config.solve_nodes) if config.solve_nodes else None
        self._endgames = Endgames(solver) if solver else None
        self._drills = Drills(solver) if solver and config.drills else None
        self._keys = np.zeros(batch, np.uint64)
        self._plies = np.zeros(batch, np.int64)
        self._random_plies = np.zeros(batch, np.int64)
        self._straying = Straying(rules, config.stray_share)
        self._stray_until = np.zeros(batch, np.int64)
        self._allocate(2 * rules.num_cells)
        self.games_dropped = self.evaluations = 0
        self.solver_seconds = 0.0
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
        """Begin new games in some rows."""
        keys = draw_keys(self._rng, len(rows))
        self._keys[rows] = keys
        self._plies[rows] = 0
        self._random_plies[rows] = self._starts.begin(self._env, rows, keys)
        self._stray_until[rows] = self._straying.until(keys)
        self._resignation.start(rows)

    def use(self, evaluator: Evaluator, version: int) -> None:
        """Judge positions by another evaluator from now on, in games under way as well.

        Args:
            version: of its weights, noted in the games that end with them.
        """
        self._search.use(evaluator)
        self.version = version

    def play(self, plies: int) -> list[Trajectory]:
        """Play so many plies of every game and return those that ended, in the order they ended, and their drills."""
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
        # One coin for all games: batches stay full.
        full = self._config.full_search_share >= 1 or self._rng.random() < self._config.full_search_share
        result = self._think(derive(self._keys, at + 1), full)
        strays = self._straying.moves(
            self._keys, self._random_plies + at, self._stray_until, self._env.legal_action_mask
        )
        actions = np.where(strays >= 0, strays, result.actions)
        resigning = self._resignation.judge(result.root_value, self._env.to_play, self._keys)
        for name, values in (
            ("states", self._env.gather()),
            ("policy_targets", result.policy_target if full else np.float16(0)),
            ("root_values", result.root_value),
            ("surprise", surprise_of(result.policy_target, self._search.root_prior) if full else np.float16(0)),
            ("to_play", self._env.to_play),
            ("actions", actions),
            ("strayed", strays >= 0),
        ):
            self._record[name][rows, at] = values
        resigned = np.where(resigning, self._env.to_play, -1)
        self._env.step(actions)
        self._plies += 1
        resigned[self._env.terminated] = -1
        over = self._env.terminated | (resigned >= 0)
        finished = [self._trajectory(int(row), int(resigned[row])) for row in np.flatnonzero(over)]
        capped = np.flatnonzero((self._plies >= self._ply_cap) & ~over)
        for row in capped:
            self.games_dropped += 1
            log.warning(
                "a game reached the cap of %d plies and was dropped: %s",
                self._ply_cap,
                self._env.position(int(row)).text(),
            )
        replaced = np.concatenate([np.flatnonzero(over), capped])
        if len(replaced):
            self._start(replaced)
        if self._drills:
            began = time.perf_counter()
            for game in finished.copy():
                finished += self._drills.make(game.game_id, self._config.drills, self.version)
            self.solver_seconds += time.perf_counter() - began
        return finished

    def _think(self, keys: UInt64Array, full: bool) -> SearchResult:
        """Search every game, in full, or cheaply and without exploring."""
        c = self._config
        simulations = simulations_at(self._search_config, self.version)
        if not full:
            simulations = min(simulations, c.cheap_simulations)
        self.evaluations += (simulations + 1) * len(keys)
        early = self._random_plies + self._plies < self._varied
        temperature = np.where(early, c.temperature, c.final_temperature)
        return self._search.run(self._env, keys, simulations, full, temperature)

    def _trajectory(self, row: int, resigned: int) -> Trajectory:
        """The finished game of a row; `resigned` is the seat that gave it up, -1 if it was played out."""
        length = int(self._plies[row])
        self._starts.remember(self._record["states"][row, :length], int(self._random_plies[row]), self._keys[row])
        record = {name: array[row, :length].copy() for name, array in self._record.items()}
        if self._endgames:
            began = time.perf_counter()
            record["solved"], record["policy_targets"], kept = self._endgames.solve(
                record["states"], record["policy_targets"]
            )
            self.solver_seconds += time.perf_counter() - began
            # The divergence from what was expected grows by what was taken away.
            record["surprise"] = (record["surprise"] - np.log(np.maximum(kept, 1e-3))).astype(np.float16)
        return Trajectory(
            **record,
            outcome=int(self._env.outcome[row]) if resigned < 0 else 2 * resigned - 1,
            random_plies=int(self._random_plies[row]),
            game_id=int(self._keys[row]),
            version=self.version,
            resigned=resigned,
            would_resign=int(self._resignation.would_resign[row]),
            drill=0,
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All that is needed to go on: the unfinished games, by name. The generator is the caller's to keep."""
        longest = max(1, int(self._plies.max()))
        played = np.arange(longest) < self._plies[:, None]
        return {
            "env": self._env.gather(),
            "begun": np.array([self._begun]),
            "keys": self._keys.copy(),
            "plies": self._plies.copy(),
            "random_plies": self._random_plies.copy(),
            "dropped": np.array([self.games_dropped]),
            "below": self._resignation.below.copy(),
            "would_resign": self._resignation.would_resign.copy(),
            **self._starts.state(),
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
        self._begun = bool(state["begun"][0])
        longest = state["record_states"].shape[1]
        if longest > self._record["states"].shape[1]:
            self._allocate(longest)
        for name, array in self._record.items():
            array[:, :longest] = state[f"record_{name}"]
        self._env.scatter(None, state["env"])
        self._keys[...], self._plies[...] = state["keys"], state["plies"]
        self._random_plies[...] = state["random_plies"]
        self._stray_until[...] = self._straying.until(self._keys)
        self.games_dropped = int(state["dropped"][0])
        self._resignation.below[...], self._resignation.would_resign[...] = state["below"], state["would_resign"]
        self._starts.load_state(state)


def surprise_of(target: npt.NDArray[np.float32], prior: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Kullback-Leibler divergence of priors from policy targets in nats: float32 [B] from two of [B, A]."""
    ratio = np.maximum(target, 1e-12) / np.maximum(prior, 1e-12)
    return np.asarray(np.maximum((target * np.log(ratio)).sum(axis=1), 0))


def streams_of(seed: int, names: tuple[str, ...]) -> dict[str, np.random.Generator]:
    """Independent generators for the parts of a run, all from one seed."""
    sequences = np.random.SeedSequence(seed).spawn(len(names))
    return {name: np.random.default_rng(s) for name, s in zip(names, sequences, strict=True)}
