"""Judge models of small boards by the exact solver.

    python scripts/grade.py runs/NAME/bot.onnx [--base 3] [--simulations 16 64] [--search puct | engine]

The positions are those of training/data: solved exactly, won and lost ones equally many. Printed are the share of won
positions in which the chosen move keeps the win, by the raw policy and by search, and the share of all positions in
which the value has the right sign, with 95 % intervals; and on base 3 after how many of Black's first turns the model
swaps exactly where it should.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from lifeline import LifelineError
from lifeline.search.evaluator import OnnxEvaluator
from lifeline.search.policies import POLICIES
from training.arena import wilson_interval
from training.grading import grade, graded, opening_winners, swaps_right


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
    parser.add_argument("--search", choices=(*POLICIES, "engine"), default="gumbel")
    arguments = parser.parse_args()
    positions = graded(arguments.base)
    print(f"{len(positions.positions)} positions of base {arguments.base}, {positions.won.mean():.1%} won")
    for path in arguments.models:
        evaluator = OnnxEvaluator(path, threads=0)
        for count in (0, *arguments.simulations):
            name = "raw" if count == 0 else str(count)
            grades = grade(evaluator, positions, count, arguments.search)
            line = f"keeps the win {share(grades.keeps_win)}, value sign right {share(grades.right_sign)}"
            if opening_winners(arguments.base):
                right = swaps_right(evaluator, arguments.base, count, arguments.search)
                line += f", swaps right {right.sum()} of {len(right)}"
            print(f"{path}  simulations {name:>5}: {line}")


if __name__ == "__main__":
    try:
        main()
    except LifelineError as error:
        sys.exit(f"grade.py: {error}")
