"""Judge models of small boards by the exact solver.

    python scripts/grade.py runs/NAME/bot.onnx [--base 3] [--simulations 16 64] [--search puct]

The positions are those of training/data: solved exactly, won and lost ones equally many. Printed are the share of won
positions in which the chosen move keeps the win, by the raw policy and by search, and the share of all positions in
which the value has the right sign; with 95 % intervals.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from lifeline import BatchEnv, LifelineError
from lifeline.search.evaluator import OnnxEvaluator
from lifeline.search.policies import POLICIES, quiet_policy
from lifeline.search.search import BatchSearch
from training.arena import wilson_interval
from training.grading import graded


def share(right: np.ndarray) -> str:
    """A share in per cent, with its interval."""
    low, high = wilson_interval(int(right.sum()), len(right))
    return f"{right.mean():6.1%} ({low:.1%}-{high:.1%})"


def main() -> None:
    """Grade each model named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--base", type=int, default=3, help="3 or 4")
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--search", choices=POLICIES, default="gumbel")
    arguments = parser.parse_args()
    positions = graded(arguments.base)
    games, won = positions.games(), positions.won
    size, rows = games.batch_size, np.arange(games.batch_size)
    print(f"{size} positions of base {arguments.base}, {won.mean():.1%} won")
    for path in arguments.models:
        evaluator = OnnxEvaluator(path, threads=0)
        logits, values = evaluator.evaluate(games)
        chosen = {"raw": np.where(games.legal_action_mask, logits, -np.inf).argmax(axis=1)}
        signs = {"raw": (values > 0) == won}
        for count in arguments.simulations:
            policy = quiet_policy(arguments.search)
            search = BatchSearch(lambda: BatchEnv(positions.rules, size), evaluator, policy, count)
            result = search.run(games, np.zeros(size, np.uint64))
            chosen[str(count)], signs[str(count)] = result.actions, (result.root_value > 0) == won
        for name, actions in chosen.items():
            kept = positions.winning[rows, actions][won]
            print(f"{path}  simulations {name:>5}: keeps the win {share(kept)}, value sign right {share(signs[name])}")


if __name__ == "__main__":
    try:
        main()
    except LifelineError as error:
        sys.exit(f"grade.py: {error}")
