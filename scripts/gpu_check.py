"""Try all that a GPU is for, from end to end, in about five minutes, and print one table.

    python scripts/gpu_check.py [--base 7] [--blocks 10] [--channels 120]

Measured are the network alone, by batch and precision; self-play beside it, in two groups of games that take turns; the
learner; and a short training run with its final match. Without a CUDA device it says so and ends with status 1;
`--device cpu --quick` tries the same code on a CPU, whose figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from lifeline import BatchEnv, LifelineError, Rules
from lifeline.bench_search import mid_game_states
from lifeline.search.evaluator import UniformEvaluator
from training.bench import some_samples
from training.config import Config, build_config
from training.devices import number_type
from training.learner import Learner
from training.network import Exportable, Network
from training.selfplay import SelfPlay
from training.torch_evaluator import TorchEvaluator

Row = tuple[str, str, str]
# Of the weights that play, in learner steps: so late in a run that searches have grown as large as they get.
LATE = 10**9


class Counting(TorchEvaluator):
    """Counts the positions it has judged."""

    rows = 0

    def evaluate(self, leaves):
        """See `TorchEvaluator.evaluate`."""
        self.rows += leaves.batch_size
        return super().evaluate(leaves)


def rate(step: Callable[[], int], device: torch.device, seconds: float) -> float:
    """Units a second of a step that returns how many it did; two steps are not counted."""
    for _ in range(2):
        step()
    synchronize(device)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        done += step()
    synchronize(device)
    return done / (time.perf_counter() - began)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def forward_rows(config: Config, device: torch.device, batches: list[int], seconds: float) -> list[Row]:
    """The network alone: float32, bfloat16, and compiled."""
    torch.manual_seed(0)
    model = Exportable(Network(config.network)).eval().to(device, memory_format=torch.channels_last)
    compiled = torch.compile(model)
    rules, rows = config.game.rules(), []
    for batch in batches:
        env = BatchEnv(rules, batch)
        env.scatter(None, mid_game_states(rules, batch, np.random.default_rng(0)))
        planes = torch.from_numpy(env.observation).to(device, memory_format=torch.channels_last)
        for name, forward, half in (
            ("float32", model, False),
            ("bfloat16", model, True),
            ("bfloat16, compiled", compiled, True),
        ):

            def step(forward=forward, planes=planes, half=half) -> int:
                with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=half):
                    forward(planes)
                return len(planes)

            try:
                rows.append((f"network, {name}", f"batch {batch}", f"{rate(step, device, seconds):,.0f} positions/s"))
            except Exception as error:  # a compiler that is not there must not hide the rest of the table
                rows.append((f"network, {name}", f"batch {batch}", f"failed: {first_line(error)}"))
    return rows


def selfplay_rows(config: Config, device: torch.device, seconds: float) -> list[Row]:
    """Self-play on one core and the device, and the evaluator alone on batches of the same size."""
    rules, rows = config.game.rules(), []
    torch.manual_seed(0)
    weights = Network(config.network).state_dict()
    for groups in (1, 2):
        selfplay = config.selfplay.model_copy(update={"groups": groups})
        games = SelfPlay(rules, selfplay, config.search, UniformEvaluator(), np.random.default_rng(0), on_gpu=True)
        games.play(rules.num_cells)
        evaluator = Counting(config.network, weights, device, number_type(config, device))
        games.use(evaluator, LATE)

        def play(games=games, evaluator=evaluator) -> int:
            before = evaluator.rows
            games.play(1)
            return evaluator.rows - before

        env = BatchEnv(rules, selfplay.batch_size // groups)
        env.scatter(None, mid_game_states(rules, env.batch_size, np.random.default_rng(0)))

        def alone(evaluator=evaluator, env=env) -> int:
            evaluator.evaluate(env)
            return env.batch_size

        both = [(rate(play, device, seconds / 3), rate(alone, device, seconds / 3)) for _ in range(3)]
        together, only = (float(np.median(part)) for part in zip(*both, strict=True))
        title = f"{selfplay.batch_size} games in {groups} group{'s' if groups > 1 else ''}"
        rows.append(("self-play, one core", title, f"{together:,.0f} evaluations/s"))
        rows.append(("evaluator alone", f"batch {env.batch_size}", f"{only:,.0f} evaluations/s"))
        rows.append(("efficiency", title, f"{together / only:.2f}"))
    return rows


def learner_rows(config: Config, device: torch.device, batches: list[int], seconds: float) -> list[Row]:
    """Whole steps of the learner."""
    rows, replay = [], some_samples(config)
    for batch in batches:
        learning = config.learner.model_copy(update={"batch_size": batch})
        dtype, rng = number_type(config, device), np.random.default_rng(0)
        learner = Learner([config.game.rules()], config.network, learning, rng, 0, device, dtype=dtype)

        def step(learner=learner, batch=batch) -> int:
            return learner.learn(replay, 4).steps * batch

        rows.append(("learner", f"batch {batch}", f"{rate(step, device, seconds):,.0f} samples/s"))
        learner.close()
    return rows


def training_rows(config: Config, device: torch.device, minutes: float) -> list[Row]:
    """A whole run by the command line, workers on the device, and the match at its end."""
    rows = []
    for title, settings in (
        ("training, one process", {"workers": 0}),
        ("training, workers", {"workers": max(1, min(8, (os.cpu_count() or 2) - 1)), "worker_gpus": 0.1}),
    ):
        if device.type == "cpu":
            settings["worker_gpus"] = 0
        with tempfile.TemporaryDirectory() as folder:
            path, run = Path(folder) / "check.yaml", Path(folder) / "run"
            values = config.model_dump(mode="json") | settings | {"minutes": minutes, "device": device.type}
            path.write_text(json.dumps(values))  # JSON is YAML
            command = [sys.executable, "-m", "lifeline.cli", "train", str(path), "--run-dir", str(run)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
                rows.append((title, "", f"failed: {last[0][:80]}"))
                continue
            summary = json.loads((run / "summary.json").read_text())
            seconds = max(1e-9, summary["training_seconds"])
            rows.append((title, f"{minutes:g} min", f"{summary['samples'] / seconds:,.0f} samples made/s"))
            rows.append((title, "learner steps", f"{summary['learner_steps']:,}"))
            for match in summary["matches"]:
                rows.append((title, f"against {match['opponent']}", f"{match['wins']} of {match['games']}"))
    return rows


def first_line(error: BaseException) -> str:
    """What went wrong, in one short line."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:70]


def main() -> None:
    """Check, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=int, default=7)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--channels", type=int, default=120, help="a multiple of 6")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    a = parser.parse_args()
    if a.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("gpu_check.py: torch finds no CUDA device here; `nvidia-smi` tells whether the driver does")
    device = torch.device(a.device)
    games = 8 if a.quick else 512
    network = {"blocks": a.blocks, "channels": a.channels, "head_channels": 48, "value_hidden": 144}
    config = build_config(
        {
            "game": {"base": a.base},
            "network": network | {"region_planes": True, "equivariance": "turns"},
            "search": {"num_simulations": 4 if a.quick else 32},
            "selfplay": {"batch_size": games, "plies_per_iteration": 2},
            "replay": {"min_window": 64 if a.quick else 20_000},
            "learner": {"batch_size": 8 if a.quick else 512, "min_samples": 64 if a.quick else 4000},
            "evaluation": {"games": 2 if a.quick else 20, "num_simulations": 16, "opponents": ["random"], "share": 0},
        },
        "gpu_check",
    )
    seconds = 0.1 if a.quick else 2.0
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"base {a.base} ({Rules(a.base).num_cells} cells), {a.blocks} blocks of {a.channels} channels")
    began = time.perf_counter()
    rows: list[Row] = []
    parts = (
        lambda: forward_rows(config, device, [8] if a.quick else [64, 256, 1024, 4096], seconds),
        lambda: selfplay_rows(config, device, 3 * seconds),
        lambda: learner_rows(config, device, [8] if a.quick else [256, 512, 2048], seconds),
        lambda: training_rows(config, device, 0.05 if a.quick else 1.0),
    )
    for part in parts:
        try:
            rows += part()
        except Exception as error:  # the other parts are still of use
            rows.append(("failed", "", f"{type(error).__name__}: {first_line(error)}"))
        print(f"... {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    if device.type == "cuda":
        rows.append(("memory", "greatest", f"{torch.cuda.max_memory_allocated(device) / 1e9:.1f} GB"))
    print("| what | | |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(f"{time.perf_counter() - began:.0f} s in all")
    if any("failed" in "".join(row) for row in rows):
        sys.exit("gpu_check.py: some parts failed, see the table")


if __name__ == "__main__":
    try:
        main()
    except LifelineError as error:
        sys.exit(f"gpu_check.py: {error}")
