"""Steps a second of the rules' kernels on one core: uniformly random legal games, and stored states stepped at random.

    python benchmarks/engine.py [--bases 3 5 7] [--seconds 2]

Prints the median of five rounds and their spread, and beside each the reference in plain Python, in the same run.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
from machine import headline

from lifeline import Position, Rules, kernels
from lifeline.compiled import kernel


@kernel
def play_games(start, games, stream, work, spec):
    """Play random games from a state; returns the plies played in all."""
    plies = 0
    for _ in range(games):
        kernels.load(work, start)
        plies += kernels.playout(work, stream, spec)
    return plies


def reference_rate(rules: Rules, seconds: float) -> float:
    """Plies a second of random games played by the reference."""
    rng, position, plies = random.Random(0), Position.start(rules), 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        position = Position.start(rules) if position.is_over else position.play(rng.choice(position.legal_actions()))
        plies += 1
    return plies / (time.perf_counter() - began)


def rounds(measure, seconds: float) -> tuple[float, float, float]:
    """Least, median and greatest rate of five rounds."""
    rates = []
    for _ in range(5):
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds / 5:
            done += measure()
        rates.append(done / (time.perf_counter() - began))
    return min(rates), float(np.median(rates)), max(rates)


def measure(base: int, seconds: float) -> str:
    """One line of the table."""
    rules = Rules(base)
    spec = kernels.spec_of(rules)
    work = np.zeros(kernels.work_size(len(spec.words)), np.uint64)
    start, stream = kernels.encode_position(Position.start(rules)), np.zeros(1, np.uint64)
    play_games(start, 1, stream, work, spec)
    playouts = rounds(lambda: play_games(start, 200 if base < 8 else 20, stream, work, spec), seconds)

    count, rng = 4096, np.random.default_rng(0)
    states = np.tile(start, (count, 1))
    kernels.random_plies(states, rng.integers(0, rules.num_cells, count), stream, work, spec)
    mask = np.zeros((count, rules.num_actions), np.bool_)
    kernels.legal_batch(states, mask, work, spec)
    running = int(mask.any(axis=1).sum())
    actions = np.array([rng.choice(np.flatnonzero(m)) if m.any() else 0 for m in mask])

    def step_all() -> int:
        after = states.copy()
        kernels.step_batch(after, actions, work, spec)
        kernels.legal_batch(after, mask, work, spec)
        return running

    step_all()
    stored = rounds(step_all, seconds)
    cells = [f"{middle:,.0f} ({low:,.0f}-{high:,.0f})" for low, middle, high in (playouts, stored)]
    return f"{base:>4} {cells[0]:>36} {cells[1]:>36} {reference_rate(rules, 1.0):>12,.0f}"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bases", type=int, nargs="+", default=[3, 5, 7, 9, 12])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    arguments = parser.parse_args()
    print(headline())
    print(f"{'base':>4} {'playout steps/s (range)':>36} {'stored-state steps/s (range)':>36} {'reference/s':>12}")
    for base in arguments.bases:
        print(measure(base, arguments.seconds))


if __name__ == "__main__":
    main()
