"""How fast self-play and learner are here: what `lifeline bench selfplay` and `lifeline bench learner` measure."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from lifeline.bench import rate
from lifeline.bench_search import mid_game_states
from lifeline.env import BatchEnv
from lifeline.search.evaluator import Env, FloatArray, Run, UniformEvaluator, judge_running
from training.cell_evaluator import CellEvaluator
from training.config import Config
from training.devices import number_type
from training.evaluators import evaluator_of
from training.learner import Learner
from training.network import Network
from training.replay import Replay
from training.replica import Replica
from training.selfplay import SelfPlay
from training.targets import samples_of
from training.trajectory import Trajectory, without_drills

# Self-play and the evaluator alone take turns of so many seconds: whatever else the machine does hits both.
_SLICE = 1.0
# The learner's figures need no more samples than that: how many there are does not change its speed.
_SAMPLES = 2_000
_ROUNDS = 5
# Of the weights that play, in learner steps: so late in a run that searches have grown as large as they get.
_VERSION = 10**9
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class SelfPlayRates:
    """What one worker's self-play does on one thread, with fresh random weights; rates are medians over slices.

    Attributes:
        base, opening, batch, num_simulations: of the configuration.
        parameters: weights of the network.
        slices: turns that self-play and the evaluator alone have taken. seconds: of self-play in all.
        evaluations: rows the evaluator has run in self-play.
        evaluations_per_second: of them. forward_only_per_second: of the evaluator alone, on batches of the mean size.
        efficiency: the ratio of the two. efficiency_low, efficiency_high: over the slices.
        solver_share: of the time of self-play, what the truth about last plies and drills took.
        mean_batch: rows the evaluator ran at once.
        games_per_hour: that ended, from games spread over all their stages.
        peak_memory_mb: resident memory of this process at its greatest, megabytes.
        last_over_first: evaluations a second in the last minute of the run, or its last half if shorter, over those in
            the first; forward_last_over_first: the same of the evaluator alone, which tells what the machine did
            meanwhile. None unless asked for.
    """

    base: int
    opening: str
    batch: int
    num_simulations: int
    parameters: int
    slices: int
    seconds: float
    evaluations: int
    evaluations_per_second: float
    forward_only_per_second: float
    efficiency: float
    efficiency_low: float
    efficiency_high: float
    solver_share: float
    mean_batch: float
    games_per_hour: float
    peak_memory_mb: float
    last_over_first: float | None = None
    forward_last_over_first: float | None = None


@dataclass(frozen=True)
class LearnerRates:
    """What the learner does on CPU threads; rates are medians over rounds.

    Attributes:
        base, batch: of the configuration. parameters: weights of the network.
        samples_per_second: on one thread. samples_per_second_all_cores: on `cores` threads, in turn with it.
        forward_share: of a step's time on one thread, drawing its samples, laying them out and the network with its
            loss; backward_share: the gradients; update_share: the optimiser.
        peak_memory_mb: resident memory of this process at its greatest, megabytes.
    """

    base: int
    batch: int
    parameters: int
    samples_per_second: float
    cores: int
    samples_per_second_all_cores: float
    forward_share: float
    backward_share: float
    update_share: float
    peak_memory_mb: float


@dataclass(frozen=True)
class Slice:
    """One turn of self-play and one of the evaluator alone.

    Attributes:
        at: seconds since the first began.
        rows, calls, seconds, games: of self-play. alone_rows, alone_seconds: of the evaluator alone.
    """

    at: float
    rows: int
    calls: int
    seconds: float
    games: int
    alone_rows: int
    alone_seconds: float


class CountingEvaluator:
    """An evaluator that counts what a network runs.

    Args:
        run: of the network's own evaluator.

    Attributes:
        rows: positions run so far. calls: batches.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.rows = self.calls = 0

    def run(self, planes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See `Run`."""
        self.rows += len(planes)
        self.calls += 1
        return self._run(planes)

    def evaluate(self, leaves: Env) -> tuple[FloatArray, FloatArray]:
        """See `Evaluator.evaluate`."""
        return judge_running(leaves, self.run)


def peak_memory_mb() -> float:
    """Resident memory of this process at its greatest, megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def play_in_turn(
    games: SelfPlay, evaluator: CountingEvaluator, planes: FloatArray, seconds: float, slice_seconds: float = _SLICE
) -> list[Slice]:
    """Self-play and its evaluator alone, in turn, for so many seconds in all, at least one turn each.

    Args:
        planes: float32 [B, C, H, W], what the evaluator is shown when alone: as many of them as self-play, just
            before, showed it at once on average.
    """
    slices: list[Slice] = []
    start = time.perf_counter()
    while not slices or time.perf_counter() - start < seconds:
        rows, calls, ended, began = evaluator.rows, evaluator.calls, 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < slice_seconds:
            ended += len(without_drills(games.play(1)))
        rows, calls = evaluator.rows - rows, evaluator.calls - calls
        shown = planes[: max(1, round(rows / max(1, calls)))]
        alone, began_alone = 0, time.perf_counter()
        while (elapsed_alone := time.perf_counter() - began_alone) < elapsed:
            evaluator.run(shown)
            alone += len(shown)
        slices.append(Slice(began - start, rows, calls, elapsed, ended, alone, elapsed_alone))
    return slices


def _worker(config: Config, seconds: float) -> tuple[SelfPlay, CountingEvaluator]:
    """A worker's games, spread over all their stages, and its evaluator."""
    rules = config.game.rules()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        network = Network(config.network)
    judge = evaluator_of(config, network.state_dict(), _CPU, threads=1)
    assert isinstance(judge, CellEvaluator)
    evaluator = CountingEvaluator(judge.run)
    null = UniformEvaluator()
    games = SelfPlay(rules, config.selfplay, config.search, null, np.random.default_rng(config.seed))
    # Games that all began at once would end at once. The evaluator that costs nothing spreads them quickly.
    began = time.perf_counter()
    for _ in range(2 * rules.num_cells):
        games.play(1)
        if time.perf_counter() - began > seconds:
            break
    games.use(evaluator, _VERSION)
    games.play(1)
    return games, evaluator


def selfplay_rates(config: Config, seconds: float = 20.0, minutes: float | None = None) -> SelfPlayRates:
    """Measure the self-play of one worker, on the CPU and one thread.

    Args:
        config: of a run; its device and workers do not matter.
        seconds: of self-play and evaluator alone together; preparations not counted.
        minutes: in place of `seconds`, and the throughput at both ends is compared.
    """
    torch.set_num_threads(1)
    rules, batch = config.game.rules(), config.selfplay.batch_size
    games, evaluator = _worker(config, seconds)
    env = BatchEnv(rules, batch)
    env.scatter(None, mid_game_states(rules, batch, np.random.default_rng(0)))
    length = seconds if minutes is None else 60 * minutes
    solving = games.solver_seconds
    slices = play_in_turn(games, evaluator, env.observation.copy(), length, min(_SLICE, length / 4))
    rates = np.array([s.rows / s.seconds for s in slices])
    alone = np.array([s.alone_rows / s.alone_seconds for s in slices])
    ratios = rates / alone
    played = sum(s.seconds for s in slices)
    evaluations, forward = float(np.median(rates)), float(np.median(alone))
    ends: tuple[float, float] | None = None
    if minutes is not None:
        window = min(60.0, length / 2)
        first = [s for s in slices if s.at < window]
        last = [s for s in slices if s.at >= slices[-1].at - window]
        ends = _rate(last) / _rate(first), _rate_alone(last) / _rate_alone(first)
    return SelfPlayRates(
        rules.base,
        rules.opening,
        batch,
        config.search.num_simulations,
        sum(p.numel() for p in Network(config.network).parameters()),
        len(slices),
        played,
        sum(s.rows for s in slices),
        evaluations,
        forward,
        evaluations / forward,
        float(ratios.min()),
        float(ratios.max()),
        (games.solver_seconds - solving) / played,
        sum(s.rows for s in slices) / sum(s.calls for s in slices),
        3600 * sum(s.games for s in slices) / played,
        peak_memory_mb(),
        *(ends or (None, None)),
    )


def _rate(slices: list[Slice]) -> float:
    return sum(s.rows for s in slices) / sum(s.seconds for s in slices)


def _rate_alone(slices: list[Slice]) -> float:
    return sum(s.alone_rows for s in slices) / sum(s.alone_seconds for s in slices)


def some_samples(config: Config) -> Replay:
    """Samples of games on the config's base, played without a network."""
    rules = config.game.rules()
    selfplay = config.selfplay.model_copy(update={"batch_size": 32})
    search = config.search.model_copy(update={"num_simulations": 2})
    games = SelfPlay(rules, selfplay, search, UniformEvaluator(), np.random.default_rng(config.seed))
    finished: list[Trajectory] = []
    while sum(len(t.actions) for t in finished) < _SAMPLES:
        finished += games.play(1)
    replay = Replay(config.replay, {rules: 1.0})
    replay.add(samples_of(finished, config.learner.root_value_share, config.replay.surprise_share))
    return replay


def step_shares(config: Config, replay: Replay, seconds: float) -> tuple[float, float, float]:
    """Shares of forward pass, gradients and optimiser in the time of a learner's steps on one thread; they sum to 1."""
    dtype = number_type(config, _CPU)
    replica = Replica([config.game.rules()], config.network, config.learner, config.seed, _CPU, dtype)
    rng, size = np.random.default_rng(0), config.learner.batch_size
    spent, steps, start = np.zeros(3), 0, time.perf_counter()
    while steps < 2 or time.perf_counter() - start < seconds:
        began = time.perf_counter()
        loss, figures = replica.loss(replay.draw(size, rng, config.learner.horizon), rng.integers(0, 12, size))
        judged = time.perf_counter()
        gradients = torch.autograd.grad(loss, replica.parameters)
        done = time.perf_counter()
        for parameter, gradient in zip(replica.parameters, gradients, strict=True):
            parameter.grad = torch.empty_like(parameter).copy_(gradient)
        replica.update(steps, float(figures[0]), float(figures[1]))
        if steps > 0:  # the first compiles, and asks the system for memory
            spent += judged - began, done - judged, time.perf_counter() - done
        steps += 1
    forward, backward, update = (float(share) for share in spent / spent.sum())
    return forward, backward, update


def learner_rates(config: Config, seconds: float = 10.0) -> LearnerRates:
    """Measure the learner on the CPU.

    Args:
        config: of a run; its device, devices and threads do not matter.
        seconds: for each figure, preparations not counted.
    """
    torch.set_num_threads(1)  # the learner spreads its batches over threads itself
    rules, cores = config.game.rules(), os.cpu_count() or 1
    replay = some_samples(config)

    def steps(threads: int) -> Callable[[], float]:
        learner = Learner(
            [rules],
            config.network,
            config.learner,
            np.random.default_rng(0),
            config.seed,
            _CPU,
            threads,
            dtype=number_type(config, _CPU),
        )
        learner.learn(replay, 2)  # compiles
        return lambda: float(learner.learn(replay, 1).steps * config.learner.batch_size)

    one, every = steps(1), steps(cores)
    single, together = [], []
    for _ in range(_ROUNDS):
        single += list(rate(one, seconds / _ROUNDS, 1))
        together += list(rate(every, seconds / _ROUNDS, 1))
    return LearnerRates(
        rules.base,
        config.learner.batch_size,
        sum(p.numel() for p in Network(config.network).parameters()),
        float(np.median(single)),
        cores,
        float(np.median(together)),
        *step_shares(config, replay, seconds),
        peak_memory_mb(),
    )
