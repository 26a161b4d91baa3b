"""Steps a second of the engine on one core, beside plain labelling and the reference in plain Python, in the same run.

    python benchmarks/engine.py [--bases 3 5 7 9 12] [--seconds 2] [--compile]

Prints the medians of rounds in which engine and plain labelling take turns, and the ratio of the two: it holds on any
machine, so a slow-down shows as a smaller ratio. `--compile` measures instead how long all kernels take to compile, and
to load from the cache.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
from labelling import plain_board, play_plain_games
from machine import headline

from lifeline import Position, Rules
from lifeline.bench import engine_rates, rate

# Plays, solves, searches and evaluates on one board, so that every kernel is compiled; prints the seconds it took.
_USE_ALL = """
import time
began = time.perf_counter()
import numpy as np
from lifeline import BatchEnv, Position, Rules
from lifeline.play.players import NetworkPlayer, RolloutPlayer
from lifeline.search.evaluator import UniformEvaluator
from lifeline.solver import Solver
rules = Rules({base})
env = BatchEnv(rules, 2)
env.observation, env.legal_action_mask
env.step_random(np.array([40, 40]), np.array([1], np.uint64))
env.reset()
rows, keys = np.arange(2), np.arange(2).astype(np.uint64)
RolloutPlayer(rules, 10).choose(env, rows, keys)
NetworkPlayer(rules, UniformEvaluator(), 4, "uniform").choose(env, rows, keys)
Solver(rules).value(env.gather(np.array([0]))[0], 100)
print(time.perf_counter() - began)
"""


def reference_rate(rules: Rules, seconds: float) -> float:
    """Plies a second of random games played by the reference."""
    rng, position, plies = random.Random(0), Position.start(rules), 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        position = Position.start(rules) if position.is_over else position.play(rng.choice(position.legal_actions()))
        plies += 1
    return plies / (time.perf_counter() - began)


def measure(base: int, seconds: float) -> str:
    """One line of the table."""
    rules = Rules(base)
    plain, stream = plain_board(rules), np.zeros(1, np.uint64)
    play_plain_games(plain, 1, stream)
    engine_rates(rules, 0.01)
    playouts, steps, peers = [], [], []
    for _ in range(5):
        rates = engine_rates(rules, seconds / 5)
        playouts.append(rates.playout_steps_per_second)
        steps.append(rates.state_steps_per_second)
        peers.append(float(np.median(rate(lambda: float(play_plain_games(plain, 5, stream)), seconds / 5))))
    ratio = float(np.median(np.divide(playouts, peers)))
    cells = [f"{np.median(r):,.0f} ({min(r):,.0f}-{max(r):,.0f})" for r in (playouts, steps)]
    others = f"{np.median(peers):>11,.0f} {ratio:>6.0f} {reference_rate(rules, 1):>9,.0f}"
    return f"{base:>4} {cells[0]:>34} {cells[1]:>34} {others}"


def compile_seconds(base: int) -> tuple[float, float]:
    """Seconds to compile all kernels of playing in a fresh process with an empty cache, and to use the filled one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"LIFELINE_CACHE_DIR": folder}
        command = [sys.executable, "-c", _USE_ALL.format(base=base)]
        first, second = (
            float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
            for _ in range(2)
        )
    return first, second


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bases", type=int, nargs="+", default=[3, 5, 7, 9, 12])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    parser.add_argument("--compile", action="store_true", help="measure compilation instead")
    arguments = parser.parse_args()
    print(headline())
    if arguments.compile:
        print(f"{'base':>4} {'all kernels compiled':>22} {'from the cache':>16}")
        for base in arguments.bases:
            first, second = compile_seconds(base)
            print(f"{base:>4} {first:>20.1f} s {second:>14.1f} s")
        return
    print(
        f"{'base':>4} {'playout steps/s (range)':>34} {'stored-state steps/s (range)':>34} {'plain':>11} {'ratio':>6} "
        f"{'reference':>9}"
    )
    for base in arguments.bases:
        print(measure(base, arguments.seconds))


if __name__ == "__main__":
    main()
