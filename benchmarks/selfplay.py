"""Where the time of training goes: search without a network, the network alone, both together, and the learner.

    python benchmarks/selfplay.py [--config configs/base3.yaml] [--seconds 5]

All figures are of one run: evaluations a second of the evaluator alone and of self-play with it, taken in turn, and
their ratio, the efficiency; leaves a second with an evaluator that costs nothing; samples a second of the learner.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from machine import headline

from lifeline import BatchEnv
from lifeline.kernels import spec_of, state_size
from lifeline.search.evaluator import OnnxEvaluator, UniformEvaluator
from training.config import load_config
from training.export import export_onnx
from training.learner import Learner
from training.replay import ReplayBuffer
from training.selfplay import SelfPlay
from training.targets import samples_of


def rate(work: Callable[[], float], seconds: float) -> float:
    """What `work` says it did, a second."""
    done, began = 0.0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        done += work()
    return done / (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/base3.yaml"))
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure")
    parser.add_argument("--threads", type=int, default=0, help="0 = as the config says")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    rules = config.game.rules()
    threads = arguments.threads or config.threads or os.cpu_count() or 1
    torch.set_num_threads(1)
    learner = Learner(rules, config.network, config.learner, np.random.default_rng(0), 0, torch.device("cpu"), threads)
    evaluator = OnnxEvaluator(export_onnx(config.network, learner.average_weights()), threads)
    batch, simulations = config.selfplay.batch_size, config.search.num_simulations
    print(headline())
    print(f"{arguments.config}, {threads} threads, batch {batch}, {simulations} simulations, {config.network}")

    games = {
        name: SelfPlay(rules, config.selfplay, config.search, judge, np.random.default_rng(0))
        for name, judge in (("network", evaluator), ("null", UniformEvaluator()))
    }
    env = BatchEnv(rules, batch)
    env.step_random(np.arange(batch) % rules.num_cells, np.zeros(1, np.uint64))
    finished = []

    def play(name: str) -> int:
        finished.extend(games[name].play(1))
        return batch * (simulations + 1)

    def forward() -> int:
        evaluator.evaluate(env)
        return batch

    null = rate(lambda: play("null"), arguments.seconds)
    alone, together = [], []
    play("network")
    for _ in range(5):
        alone.append(rate(forward, arguments.seconds / 5))
        together.append(rate(lambda: play("network"), arguments.seconds / 5))
    efficiency = sorted(b / a for a, b in zip(alone, together, strict=True))
    print(f"null evaluator:      {null:12,.0f} leaves/s")
    print(f"evaluator alone:     {np.median(alone):12,.0f} evaluations/s ({min(alone):,.0f}-{max(alone):,.0f})")
    print(
        f"self-play with it:   {np.median(together):12,.0f} evaluations/s ({min(together):,.0f}-{max(together):,.0f})"
    )
    print(f"efficiency:          {np.median(efficiency):12.3f} ({efficiency[0]:.3f}-{efficiency[-1]:.3f})")

    replay = ReplayBuffer(config.replay, state_size(len(spec_of(rules).words)), rules.num_actions)
    while sum(len(t.actions) for t in finished) < 2000:
        play("null")
    replay.add(samples_of(finished, config.learner.root_value_share))
    learner.learn(replay, 3)
    learned = sorted(
        rate(lambda: learner.learn(replay, 1).steps * config.learner.batch_size, arguments.seconds / 5)
        for _ in range(5)
    )
    print(f"learner:             {np.median(learned):12,.0f} samples/s ({learned[0]:,.0f}-{learned[-1]:,.0f})")


if __name__ == "__main__":
    main()
