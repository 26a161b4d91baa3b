"""What workers are worth: games a second of one worker and of two, and of a whole run with and without workers.

    python benchmarks/workers.py [--config configs/base3.yaml] [--seconds 20] [--rounds 3] [--run-seconds 60]

Self-play alone is measured with weights that do not change, one and two workers in turn. Whole runs learn as they
would, all in one process (which uses all cores too: shares of each batch) and with a worker a core, in turn; counted
are samples made a second in the second half of each, ratings switched off.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import ray
from machine import headline
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from training.config import Config, load_config
from training.export import export_onnx
from training.network import Network
from training.workers import Cluster


def selfplay_rate(config: Config, workers: int, seconds: float, session: int) -> float:
    """Plies a second of so many workers, once all have begun."""
    cluster = Cluster(config.model_copy(update={"workers": workers}), None, session)
    try:
        cluster.publish(export_onnx(config.network, Network(config.network).state_dict()), 0)
        while cluster.figures().workers_alive < workers:
            cluster.collect()
        cluster.collect()
        began, before = time.perf_counter(), cluster.figures().plies
        while time.perf_counter() - began < seconds:
            cluster.collect()
        return (cluster.figures().plies - before) / (time.perf_counter() - began)
    finally:
        cluster.close()


def run_rate(path: Path, workers: str, seconds: float) -> float:
    """Samples made a second in the second half of a run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "lifeline.cli", "train", str(path), "--workers", workers]
        command += ["--minutes", str(seconds / 60), "--run-dir", f"{folder}/run"]
        command += ["--set", "evaluation.games=0", "--set", "evaluation.share=0"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        events = EventAccumulator(f"{folder}/run/tensorboard")
        events.Reload()
        points = [(e.wall_time, e.value) for e in events.Scalars("replay/samples")]
    half = points[-1][0] - seconds / 2
    late = [p for p in points if p[0] >= half]
    return (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0])


def show(name: str, rates: list[float], unit: str) -> None:
    """One line: median and spread."""
    print(f"{name:<34} {np.median(rates):10,.0f} {unit} ({min(rates):,.0f}-{max(rates):,.0f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/base3.yaml"))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run-seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    print(headline())
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    one: list[float] = []
    two: list[float] = []
    for session in range(arguments.rounds):
        one.append(selfplay_rate(config, 1, arguments.seconds, 2 * session))
        two.append(selfplay_rate(config, 2, arguments.seconds, 2 * session + 1))
    ray.shutdown()
    show("self-play, 1 worker", one, "plies/s")
    show("self-play, 2 workers", two, "plies/s")
    print(f"{'2 workers against 1':<34} {np.median([b / a for a, b in zip(one, two, strict=True)]):10.2f} times")
    local: list[float] = []
    beside: list[float] = []
    for _ in range(arguments.rounds):
        local.append(run_rate(arguments.config, "0", arguments.run_seconds))
        beside.append(run_rate(arguments.config, "auto", arguments.run_seconds))
    show("whole run, one process", local, "samples/s")
    show("whole run, a worker a core", beside, "samples/s")
    ratio = np.median([b / a for a, b in zip(local, beside, strict=True)])
    print(f"{'workers against one process':<34} {ratio:10.2f} times")


if __name__ == "__main__":
    main()
