"""What workers are worth: games a second of one worker and of two, and of a whole run with and without workers.

    python benchmarks/workers.py [--config configs/base3.yaml] [--seconds 20] [--rounds 3] [--run-seconds 60]

Self-play alone is measured with weights that do not change, one and two workers in turn. Whole runs learn as they
would, all in one process (which uses all cores too: shares of each batch) and with a worker a core, in turn; counted
are samples made a second in the second half of each, ratings switched off. With `--peer DIR`, a checkout of another
commit, that version's run in one process is measured in turn with them, by its own configs/base3.yaml.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import ray
import yaml
from machine import headline
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from training.config import Config, load_config
from training.network import Network
from training.workers import Cluster


def selfplay_rate(config: Config, workers: int, seconds: float, session: int) -> float:
    """Plies a second of so many workers, once all have begun."""
    cluster = Cluster(config.model_copy(update={"workers": workers}), None, session)
    try:
        cluster.publish(Network(config.network).state_dict(), 0)
        while cluster.figures().workers_alive < workers:
            cluster.collect()
        cluster.collect()
        began, before = time.perf_counter(), cluster.figures().plies
        while time.perf_counter() - began < seconds:
            cluster.collect()
        return (cluster.figures().plies - before) / (time.perf_counter() - began)
    finally:
        cluster.close()


def run_rate(root: Path, config: Path, workers: str, seconds: float) -> float:
    """Samples made a second in the second half of a run by the version in a folder, without ratings and matches."""
    values = yaml.safe_load(config.read_text(encoding="utf-8"))
    values["evaluation"] = {"games": 0, **({} if workers == "0" else {"share": 0})}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.yaml")
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
        command = [sys.executable, "-m", "lifeline.cli", "train", str(path), "--workers", workers]
        command += ["--minutes", str(seconds / 60), "--run-dir", f"{folder}/run"]
        environment = os.environ | {"PYTHONPATH": str(root.resolve())}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, cwd=root)
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
    parser.add_argument("--peer", type=Path, help="checkout of another commit, run in one process beside")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    print(headline())
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    one: list[float] = []
    two: list[float] = []
    for session in range(arguments.rounds):
        one.append(selfplay_rate(config, 1, arguments.seconds, 2 * session))
        two.append(selfplay_rate(config, 2, arguments.seconds, 2 * session + 1))
    ray.shutdown()
    show("self-play, 1 worker", one, "plies/s")
    show("self-play, 2 workers", two, "plies/s")
    print(f"{'2 workers against 1':<34} {np.median([b / a for a, b in zip(one, two, strict=True)]):10.2f} times")
    here = Path(__file__).parents[1]
    runs: dict[str, list[float]] = {"one process": [], "a worker a core": [], "one process of the peer": []}
    for _ in range(arguments.rounds):
        runs["one process"].append(run_rate(here, arguments.config, "0", arguments.run_seconds))
        runs["a worker a core"].append(run_rate(here, arguments.config, "auto", arguments.run_seconds))
        if arguments.peer:
            path = arguments.peer / "configs" / "base3.yaml"
            runs["one process of the peer"].append(run_rate(arguments.peer, path, "0", arguments.run_seconds))
    for name, rates in runs.items():
        if rates:
            show(f"whole run, {name}", rates, "samples/s")
            ratio = np.median([b / a for a, b in zip(rates, runs["a worker a core"], strict=True)])
            print(f"{'  workers against it':<34} {ratio:10.2f} times")


if __name__ == "__main__":
    main()
