"""How fast this machine is at the game: what `lifeline bench` measures."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.compiled import kernel
from lifeline.env import BatchEnv
from lifeline.playouts import new_field, play_out
from lifeline.rules import Position, Rules

# Positions that stored-state steps are taken from: enough that their states do not fit a core's first cache.
_STORED = 4096


@dataclass(frozen=True)
class EngineRates:
    """What the engine does in a second, medians over rounds.

    Attributes:
        base, opening: what was played. threads: working at once; rates are those of all together.
        playout_steps_per_second: uniformly random legal actions chosen and played, ends detected.
        games_per_second: random games from start to end.
        state_steps_per_second: stored states, in random order, stepped into others with their legal masks written.
        batch: games of the environment. batch_steps_per_second: of them all, by `BatchEnv.step` and its mask, on one
            thread; None when no batch was asked for.
    """

    base: int
    opening: str
    threads: int
    playout_steps_per_second: float
    games_per_second: float
    state_steps_per_second: float
    batch: int | None = None
    batch_steps_per_second: float | None = None


@kernel
def play_games(start, games, stream, work, field, spec):
    """Play random games from a state; returns the plies played in all."""
    plies = 0
    for _ in range(games):
        kernels.load(work, start)
        plies += play_out(work, stream, field, spec)
    return plies


@kernel
def step_stored(states, order, actions, after, mask, work, spec):
    """Step states, in the given order, each by its own action into `after`, and write its legal mask, bool [B, A]."""
    for i in range(len(order)):
        b = order[i]
        kernels.load(work, states[b])
        kernels.step_state(work, actions[b], spec)
        kernels.store(work, after[b])
        kernels.write_legal(work, mask, b, spec)


def rate(work: Callable[[], float], seconds: float, rounds: int = 5) -> npt.NDArray[np.float64]:
    """How much work is done a second, in each of some rounds: `work` does a piece and returns its amount."""
    rates = []
    for _ in range(rounds):
        amount, began = 0.0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds / rounds:
            amount += work()
        rates.append(amount / elapsed)
    return np.array(rates)


class _Player:
    """Random games on one thread."""

    def __init__(self, rules: Rules, key: int) -> None:
        self._spec = kernels.spec_of(rules)
        self._work = np.zeros(kernels.work_size(len(self._spec.words)), np.uint64)
        self._start, self._field = kernels.encode_position(Position.start(rules)), new_field(rules)
        self._stream = np.array([key], np.uint64)
        self._games = max(1, 100_000 // rules.num_cells)
        self.games = 0

    def play(self) -> float:
        """Some games; returns their plies."""
        self.games += self._games
        return float(play_games(self._start, self._games, self._stream, self._work, self._field, self._spec))


class _Stepper:
    """Steps from stored positions of all stages, on one thread."""

    def __init__(self, rules: Rules, key: int) -> None:
        rng = np.random.default_rng(key)
        env = BatchEnv(rules, 2 * _STORED)
        env.step_random(rng.integers(0, 2 * rules.num_cells, env.batch_size), np.array([key], np.uint64))
        running = np.flatnonzero(~env.terminated)[:_STORED]
        self._states = env.gather(running)
        self._actions = np.array([rng.choice(np.flatnonzero(m)) for m in env.legal_action_mask[running]])
        self._order = rng.permutation(len(running))
        self._after = np.zeros_like(self._states)
        self._mask = np.zeros((len(running), rules.num_actions), np.bool_)
        self._spec = kernels.spec_of(rules)
        self._work = np.zeros(kernels.work_size(len(self._spec.words)), np.uint64)

    def step(self) -> float:
        """All of them, once; returns how many."""
        step_stored(self._states, self._order, self._actions, self._after, self._mask, self._work, self._spec)
        return float(len(self._order))


def _batch_step(rules: Rules, batch: int) -> Callable[[], float]:
    """Steps a `BatchEnv` by random legal actions, finished games begun anew."""
    env, rng = BatchEnv(rules, batch), np.random.default_rng(0)

    def step() -> float:
        scores = rng.random(env.legal_action_mask.shape, np.float32)
        env.step(np.where(env.legal_action_mask, scores, -1.0).argmax(axis=1))
        if env.terminated.any():
            env.reset(env.terminated)
        return float(batch)

    return step


def engine_rates(rules: Rules, seconds: float, threads: int = 1, batch: int | None = None) -> EngineRates:
    """Measure the engine.

    Args:
        seconds: for each figure, compilation not counted.
        threads: on which random games are played, and states stepped, at once.
        batch: games of a `BatchEnv` to step as well.
    """
    players = [_Player(rules, key) for key in range(threads)]
    steppers = [_Stepper(rules, key) for key in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def playouts() -> float:
            return float(sum(pool.map(lambda player: player.play(), players)))

        def steps() -> float:
            return float(sum(pool.map(lambda stepper: stepper.step(), steppers)))

        playouts()  # compiles
        steps()
        for player in players:
            player.games = 0
        began = time.perf_counter()
        playout_rates = rate(playouts, seconds)
        games = sum(player.games for player in players) / (time.perf_counter() - began)
        step_rates = rate(steps, seconds)
    stepped = None
    if batch is not None:
        step = _batch_step(rules, batch)
        step()
        stepped = float(np.median(rate(step, seconds)))
    return EngineRates(
        rules.base,
        rules.opening,
        threads,
        float(np.median(playout_rates)),
        games,
        float(np.median(step_rates)),
        batch,
        stepped,
    )
