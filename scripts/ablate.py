"""Compare ways to train, at equal wall time: several seeds of each, judged by the solver and by games.

    python scripts/ablate.py configs/experiments/ablations_base3.yaml --out runs/ablations --seeds 0 1 2

The YAML file names a `config`, the `minutes` of each run, `games` of each match, and `arms`: for each a list of
settings in place of those of the config. The first arm is what the others are compared with. Every run has one core to
itself, `--cores` of them side by side; keep the machine quiet meanwhile. What is finished stays in --out and is not
done again.

Printed for each arm, as means over the seeds with their standard errors: won positions in which the move keeps the win
and values of the right sign, by the policy alone and with 64 simulations; swaps decided rightly; and the Elo of the arm
against the first arm, from pairs of games between the runs of each seed, with a 95 % interval over seeds and pairs:
by search alone, which compares what the networks know, and as players meet them, with the exact solver near the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import yaml

from lifeline import LifelineError, Rules
from lifeline.files import write_atomic
from lifeline.play.players import Budget, NetworkPlayer
from lifeline.search.evaluator import OnnxEvaluator
from training.arena import paired, play_games
from training.config import load_config
from training.grading import grade, graded, opening_winners, path_of, swaps_right
from training.tournament import opening_set

SIMULATIONS = 64
RESAMPLES = 2000


def train(plan: dict, name: str, overrides: list[str], seed: int, folder: Path, core: int) -> None:
    """One run on one core, if it has not been made yet."""
    if (folder / "summary.json").exists():
        return
    settings = ["workers=0", "threads=1", "evaluation.games=0", *overrides]
    command = [sys.executable, "-m", "lifeline.cli", "train", plan["config"], "--run-dir", str(folder)]
    command += ["--seed", str(seed), "--minutes", str(plan["minutes"])]
    command += [part for setting in settings for part in ("--set", setting)]
    if folder.exists():  # cut off: equal time means to begin anew
        shutil.rmtree(folder)
    print(f"{name}, seed {seed}: training on core {core}", flush=True)
    with folder.with_suffix(".log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=log, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))


def train_all(plan: dict, seeds: list[int], out: Path, cores: list[int]) -> None:
    """All runs, arm by arm within a seed, so that what the machine does hits all arms alike."""
    jobs = [(name, overrides, seed) for seed in seeds for name, overrides in plan["arms"].items()]
    lock, failed = threading.Lock(), []

    def work(core: int) -> None:
        while True:
            with lock:
                if not jobs or failed:
                    return
                name, overrides, seed = jobs.pop(0)
            try:
                train(plan, name, overrides or [], seed, out / f"{name}-{seed}", core)
            except subprocess.CalledProcessError:
                failed.append(f"{name}, seed {seed}: see {out / f'{name}-{seed}.log'}")

    threads = [threading.Thread(target=work, args=(core,)) for core in cores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit("ablate.py: " + "; ".join(failed))


def judge(folder: Path, rules: Rules) -> dict[str, float]:
    """What the solver says of a run's bot."""
    path = folder / "grades.json"
    if path.exists():
        return json.loads(path.read_text())
    evaluator, figures = OnnxEvaluator(folder / "bot.onnx", threads=0), {}
    base, usual = rules.base, rules == Rules(rules.base)  # positions are graded by the rules of strong pie
    if usual and path_of(base).exists():
        for label, count in (("raw", 0), (str(SIMULATIONS), SIMULATIONS)):
            grades = grade(evaluator, graded(base), count)
            figures[f"keeps {label}"] = 100 * float(grades.keeps_win.mean())
            figures[f"sign {label}"] = 100 * float(grades.right_sign.mean())
    if usual and opening_winners(base):
        figures["swaps"] = float(swaps_right(evaluator, base, SIMULATIONS).sum())
    summary = json.loads((folder / "summary.json").read_text())
    figures |= {"games": summary["games"], "steps": summary["learner_steps"]}
    write_atomic(path, json.dumps(figures).encode())
    return figures


def match(folder: Path, other: Path, rules, games: int, seed: int, solver: bool) -> list[float]:
    """The share of wins of one run's bot in each pair of games against another's."""
    path = folder / f"against-{other.name}{'' if solver else '-alone'}.json"
    if path.exists():
        return json.loads(path.read_text())
    openings, _ = opening_set(rules, games // 2, None, seed)
    players = [
        NetworkPlayer(rules, OnnxEvaluator(f / "bot.onnx", threads=0), Budget(SIMULATIONS, solver=solver), f.name)
        for f in (folder, other)
    ]
    played = play_games(*players, paired(openings[: games // 2], np.random.default_rng(seed)))
    won = [game.first_won for game in played]
    pairs = [(a + b) / 2 for a, b in zip(won[::2], won[1::2], strict=True)]
    write_atomic(path, json.dumps(pairs).encode())
    return pairs


def elo(share: float) -> float:
    """The difference that a share of wins stands for: what `sprt.score_of` turns back."""
    return 400 * float(np.log10(share / (1 - share)))


def interval(pairs: list[list[float]]) -> str:
    """Elo from the pairs of each seed, with a 95 % interval from seeds and pairs drawn anew."""
    rng, games = np.random.default_rng(0), 2 * sum(map(len, pairs))

    def share(parts: list[np.ndarray]) -> float:
        return (2 * sum(float(p.sum()) for p in parts) + 0.5) / (games + 1)

    parts = [np.array(p) for p in pairs]
    drawn = []
    for _ in range(RESAMPLES):
        chosen = [parts[i] for i in rng.integers(len(parts), size=len(parts))]
        drawn.append(elo(share([rng.choice(p, len(p)) for p in chosen])))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{elo(share(parts)):+.0f} ({low:+.0f} to {high:+.0f})"


def main() -> None:
    """Train, judge, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cores", type=int, nargs="+", default=list(range(os.cpu_count() or 1)))
    arguments = parser.parse_args()
    plan = yaml.safe_load(arguments.plan.read_text())
    for overrides in plan["arms"].values():  # a mistake in the last arm is told before the first is trained
        load_config(Path(plan["config"]), tuple(overrides or ()))
    rules = load_config(Path(plan["config"])).game.rules()
    arguments.out.mkdir(parents=True, exist_ok=True)
    train_all(plan, arguments.seeds, arguments.out, arguments.cores)
    first = next(iter(plan["arms"]))
    rows, columns = {}, {}
    for name in plan["arms"]:
        folders = [arguments.out / f"{name}-{seed}" for seed in arguments.seeds]
        figures = [judge(folder, rules) for folder in folders]
        row = {}
        for key in figures[0]:
            values = np.array([f[key] for f in figures])
            error = f" ± {values.std(ddof=1) / len(values) ** 0.5:.1f}" if len(values) > 1 else ""
            row[key] = f"{values.mean():.1f}{error}"
        if name != first:
            for how, solver in (("alone", False), ("with the solver", True)):
                pairs = [
                    match(folder, arguments.out / f"{first}-{seed}", rules, plan["games"], seed, solver)
                    for folder, seed in zip(folders, arguments.seeds, strict=True)
                ]
                row[f"Elo {how}"] = interval(pairs)
        rows[name] = row
        columns |= dict.fromkeys(row)
    print("| arm |" + "".join(f" {c} |" for c in columns))
    print("|---|" + "---|" * len(columns))
    for name, row in rows.items():
        print(f"| {name} |" + "".join(f" {row.get(c, '')} |" for c in columns))


if __name__ == "__main__":
    try:
        main()
    except (LifelineError, OSError, yaml.YAMLError, KeyError, TypeError) as error:
        sys.exit(f"ablate.py: {error!r}" if isinstance(error, (KeyError, TypeError)) else f"ablate.py: {error}")
