"""Draw how runs learnt, from what they left in their directories.

    python scripts/curves.py runs/base3 runs/base4 --out docs/pictures/curves.png

Four panels over the games of self-play: how far the policy is from its targets, the value loss, the length of games,
and on bases 3 and 4 what the exact solver says of every checkpoint that is still there: won positions in which the
policy alone keeps the win, and values of the right sign.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lifeline import LifelineError
from lifeline.files import write_atomic
from lifeline.rules import Rules
from training import checkpoint
from training.config import load_config
from training.grading import grade, graded, path_of
from training.rundir import CHECKPOINTS
from training.runs import CONFIG_FILE
from training.torch_evaluator import TorchEvaluator

GAMES = "selfplay/games"
PANELS = {
    "loss/policy_divergence": "policy: divergence from its targets, nats",
    "loss/value": "value: cross-entropy, nats",
    "selfplay/plies_per_game": "length of self-play games, plies",
}
TRUTH = "the network alone, by the exact solver: share that is right"
SIZE = (1200, 800)
INK, GRID = "#1a1a1a", "#e6e6e6"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")  # Okabe and Ito's
POINTS = 120


Curve = npt.NDArray[np.float64]


def scalars(run: Path) -> dict[str, Curve]:
    """float64 [N, 2] by tag: thousands of games, and the value."""
    events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    found = {
        tag: {e.step: e.value for e in events.Scalars(tag)} if tag in events.Tags()["scalars"] else {}
        for tag in (GAMES, *PANELS)
    }
    games = found.pop(GAMES)
    return {
        tag: np.array([(games[step] / 1000, values[step]) for step in sorted(values) if step in games]).reshape(-1, 2)
        for tag, values in found.items()
    }


def smooth(curve: Curve) -> Curve:
    """Means over equal parts of a curve, at most `POINTS` of them."""
    return np.array([part.mean(axis=0) for part in np.array_split(curve, POINTS) if len(part)]).reshape(-1, 2)


def truth(run: Path, base: int) -> Curve:
    """float64 [N, 3]: thousands of games, shares of wins kept and of right signs, of each checkpoint."""
    network, rows = load_config(run / CONFIG_FILE).network, []
    for path in checkpoint.list_all(run / CHECKPOINTS):
        found = checkpoint.load(path)
        grades = grade(TorchEvaluator(network, found.weights(), torch.device("cpu")), graded(base))
        rows.append((found.counters["games"] / 1000, grades.keeps_win.mean(), grades.right_sign.mean()))
    return np.array(rows, np.float64).reshape(-1, 3)


def prepare(axes: Axes, title: str) -> None:
    """A panel without needless lines."""
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(labelsize=9.5, colors=INK)
    axes.set_xlabel("thousands of games", fontsize=10, color=INK)


def picture(runs: dict[str, Path]) -> bytes:
    """A PNG of all panels; runs by the names in its legend."""
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white", layout="constrained")
    panels = dict(zip([*PANELS, TRUTH], figure.subplots(2, 2).ravel(), strict=True))
    for tag, axes in panels.items():
        prepare(axes, PANELS.get(tag, tag))
    for place, (name, run) in enumerate(runs.items()):
        colour = COLOURS[place % len(COLOURS)]
        for tag, curve in scalars(run).items():
            panels[tag].plot(*smooth(curve).T, color=colour, linewidth=1.8, label=name)
        sizes = load_config(run / CONFIG_FILE).game.sizes()
        for rules in sizes:
            if rules != Rules(rules.base) or not path_of(rules.base).exists():
                continue  # positions are graded by the rules of strong pie
            base = rules.base
            games, kept, signs = truth(run, base).T
            label = f"{name}, base {base}" if len(sizes) > 1 else name
            style = (0, (1 + 3 * (base - 3), 1))
            panels[TRUTH].plot(games, kept, color=colour, marker="o", linestyle=style, label=f"{label}: keeps the win")
            panels[TRUTH].plot(games, signs, color=colour, marker="x", linestyle=style, label=f"{label}: sign of value")
    for axes in panels.values():
        if axes.lines:
            axes.legend(fontsize=9, frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def main() -> None:
    """Draw the curves of the runs named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="RUN, named by its folder")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for run in arguments.runs:  # what is no run is told before anything is drawn
        load_config(run / CONFIG_FILE)
        if not (run / "tensorboard").is_dir():
            sys.exit(f"curves.py: {run} has no curves: there is no folder tensorboard")
    runs = {run.name: run for run in arguments.runs}
    if len(runs) < len(arguments.runs):
        sys.exit("curves.py: runs are named by their folders, and two have the same name")
    write_atomic(arguments.out, picture(runs))


if __name__ == "__main__":
    try:
        main()
    except (LifelineError, OSError) as error:
        sys.exit(f"curves.py: {error}")
