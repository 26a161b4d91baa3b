"""Where games of self-play begin: a share of them from positions that play would not choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.kernels import TURN_MASK, UInt64Array, random_depth, spec_of, state_size, work_size
from lifeline.rules import Rules
from lifeline.streams import derive
from training.config import SelfPlayConfig
from training.held_out import held_out

_IntArray = npt.NDArray[np.int64]

# Positions of earlier games that new ones may branch off.
_REMEMBERED = 4096
# Of random first turns of Black so many are swapped.
_SWAPPED = 0.5
# So often a start is drawn anew that is kept for grading.
_TRIES = 4


class Starts:
    """Begins games, each as its own key says; see `SelfPlayConfig` for the kinds of starts.

    Args:
        rules: what is played.
        config: shares of the kinds.

    Attributes:
        memory: uint64 [M, K], positions of earlier games; plies: int64 [M], how many had been played in each.
        count: positions remembered so far; the newest M are there, number i at i modulo M.
    """

    def __init__(self, rules: Rules, config: SelfPlayConfig) -> None:
        self._rules, self._config = rules, config
        self._spec = spec_of(rules)
        self._held_out = held_out(rules)
        words = len(self._spec.words)
        self._work, self._stream = np.zeros(work_size(words), np.uint64), np.zeros(1, np.uint64)
        room = _REMEMBERED if config.branch_share > 0 else 0
        self.memory = np.zeros((room, state_size(words)), np.uint64)
        self.plies = np.zeros(room, np.int64)
        self.count = 0

    def begin(self, env: BatchEnv, rows: _IntArray, keys: UInt64Array) -> _IntArray:
        """Begin games in some rows of an environment.

        Args:
            keys: uint64 [R], of the games.
        Returns:
            int64 [R], the plies that stand behind each game's first position.
        """
        env.reset(rows)
        plies = np.zeros(len(rows), np.int64)
        c = self._config
        if c.random_opening_share + c.random_start_share + c.branch_share == 0:
            return plies
        rngs = [np.random.default_rng(key) for key in derive(keys, np.zeros(len(rows), np.int64))]
        draws = np.array([rng.random() for rng in rngs])
        borders = np.cumsum([c.random_opening_share, c.random_start_share, c.branch_share])
        kinds = np.searchsorted(borders, draws, side="right")
        for kind, make in enumerate((self._openings, self._random, self._branches)):
            chosen = np.flatnonzero(kinds == kind)
            if len(chosen):
                states, played = self._fresh(make, [rngs[i] for i in chosen])
                env.scatter(rows[chosen], states)
                plies[chosen] = played
        return plies

    def _fresh(self, make: Any, rngs: list[np.random.Generator]) -> tuple[UInt64Array, _IntArray]:
        """Starts of a kind, drawn anew where models are graded on them; the usual start where that goes on."""
        states, plies = make(rngs)
        for _ in range(_TRIES):
            bad = np.flatnonzero(self._held_out.contains(states))
            if not len(bad):
                return states, plies
            states[bad], plies[bad] = make([rngs[i] for i in bad])
        bad = np.flatnonzero(self._held_out.contains(states))
        states[bad], plies[bad] = BatchEnv(self._rules, 1).gather(), 0
        return states, plies

    def _openings(self, rngs: list[np.random.Generator]) -> tuple[UInt64Array, _IntArray]:
        """One or both players' random first turns; behind the first alone the swap is still open, or done."""
        turns = np.array([rng.integers(1, 3) for rng in rngs], np.uint64)
        env, plies = BatchEnv(self._rules, len(rngs)), np.zeros(len(rngs), np.int64)
        while (going := (states := env.gather())[:, -1] & TURN_MASK < turns).any():
            # No swap: from here on it is still open, or was declined.
            mask = env.legal_action_mask[:, : self._rules.num_cells]
            env.step(_draw(mask, rngs, going))
            done = np.flatnonzero(~going)
            env.scatter(done, states[done])
            plies += going
        # A bot that swaps whatever it meets never sees what White can do where it should not have.
        swapping = np.array([rng.random() < _SWAPPED for rng in rngs])
        swapping &= env.legal_action_mask[:, self._rules.swap_action]
        states = env.gather()
        env.step(np.where(swapping, self._rules.swap_action, env.legal_action_mask.argmax(axis=1)))
        states[swapping] = env.gather()[swapping]
        return states, plies + swapping

    def _random(self, rngs: list[np.random.Generator]) -> tuple[UInt64Array, _IntArray]:
        """Random play, up to a random moment of a random game."""
        states = BatchEnv(self._rules, len(rngs)).gather()
        keys = np.array([rng.integers(2**64, dtype=np.uint64) for rng in rngs])
        plies = np.zeros(len(rngs), np.int64)
        random_depth(states, keys, plies, self._stream, self._work, self._spec)
        return states, plies

    def _branches(self, rngs: list[np.random.Generator]) -> tuple[UInt64Array, _IntArray]:
        """A random move in a position of an earlier game; the usual start while there are none."""
        env, plies = BatchEnv(self._rules, len(rngs)), np.zeros(len(rngs), np.int64)
        start = env.gather()
        known = min(self.count, len(self.memory))
        if not known:
            return start, plies
        at = np.array([rng.integers(known) for rng in rngs])
        env.scatter(None, self.memory[at])
        env.step(_draw(env.legal_action_mask, rngs, ~env.terminated))
        states, over = env.gather(), env.terminated
        return np.where(over[:, None], start, states), np.where(over, 0, self.plies[at] + 1)

    def remember(self, states: UInt64Array, plies: int, key: np.uint64) -> None:
        """Keep a position of a finished game, which one its key says, to branch off later.

        Args:
            states: uint64 [T, K] of its plies.
            plies: that stood behind the first of them.
        """
        if not len(self.memory):
            return
        ply = int(derive(np.array([key]), np.array([len(states)]))[0] % np.uint64(len(states)))
        at = self.count % len(self.memory)
        self.memory[at], self.plies[at] = states[ply], plies + ply
        self.count += 1

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What is needed to go on, by name."""
        known = min(self.count, len(self.memory))
        return {
            "branch_states": self.memory[:known].copy(),
            "branch_plies": self.plies[:known].copy(),
            "branch_count": np.array([self.count]),
        }

    def load_state(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` gave."""
        known = min(len(state["branch_states"]), len(self.memory))
        self.memory[:known], self.plies[:known] = state["branch_states"][:known], state["branch_plies"][:known]
        self.count = int(state["branch_count"][0]) if known else 0


def _draw(mask: npt.NDArray[np.bool_], rngs: list[np.random.Generator], going: npt.NDArray[np.bool_]) -> _IntArray:
    """A random action of each mask, drawn by each game's own generator where it is going on; int64 [B]."""
    drawn = [rng.integers(n) if g else 0 for rng, n, g in zip(rngs, mask.sum(axis=1), going, strict=True)]
    return np.asarray((mask.cumsum(axis=1) > np.array(drawn)[:, None]).argmax(axis=1))
