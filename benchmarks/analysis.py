"""How fast the analysis engine is, beside self-play with the same network: evaluations a second of both, in turn.

    python benchmarks/analysis.py [--config configs/base3.yaml] [--set KEY=VALUE ...] [--queries 1000] [--rounds 3]

Queries are positions from all stages of random games. They are read, searched and answered as `lifeline analyze` does
it, by as many simulations as self-play's.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from machine import headline

from lifeline.bench_search import mid_game_states
from lifeline.env import BatchEnv
from lifeline.play.analysis import AnalysisService, serve
from lifeline.play.analysis_queries import MAX_QUERY
from lifeline.play.lines import LineReader
from lifeline.search.evaluator import OnnxEvaluator
from training.bench import CountingEvaluator, selfplay_rates
from training.config import Config, load_config
from training.export import export_onnx
from training.network import Network


def queries(config: Config, count: int) -> bytes:
    """Lines that ask for so many positions."""
    rules = config.game.rules()
    env = BatchEnv(rules, count)
    env.scatter(None, mid_game_states(rules, count, np.random.default_rng(0)))
    head = {"base": rules.base, "opening": rules.opening, "komi": rules.komi, "adjacent_setup": rules.adjacent_setup}
    lines = [json.dumps({"id": str(i), **head, "position": env.position(i).text()}) for i in range(count)]
    return "\n".join(lines).encode()


def analyse(config: Config, model: bytes, lines: bytes, batch: int) -> tuple[float, float]:
    """Evaluations and positions a second, from the first line to the last answer."""
    evaluator, out = CountingEvaluator(OnnxEvaluator(model, 1).run), io.BytesIO()
    service = AnalysisService(evaluator, "random", config.search.num_simulations, batch=batch)
    serve(service, LineReader(io.BytesIO(lines[: lines.index(b"\n")]).read, MAX_QUERY), out)  # loads or compiles
    evaluator.rows, began = 0, time.perf_counter()
    serve(service, LineReader(io.BytesIO(lines).read, MAX_QUERY), out)
    seconds = time.perf_counter() - began
    return evaluator.rows / seconds, (lines.count(b"\n") + 1) / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/base3.yaml"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256, help="positions analysed at once")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of self-play in each round")
    arguments = parser.parse_args()
    config = load_config(arguments.config, tuple(arguments.set))
    torch.set_num_threads(1)
    model = export_onnx(config.network, Network(config.network).state_dict())
    lines = queries(config, arguments.queries)
    print(headline())
    print(f"{arguments.config}, {' '.join([*arguments.set, ''])}{config.search.num_simulations} simulations")
    ratios = []
    for _ in range(arguments.rounds):
        play = selfplay_rates(config, arguments.seconds).evaluations_per_second
        rate, positions = analyse(config, model, lines, arguments.batch)
        ratios.append(rate / play)
        print(
            f"self-play {play:10,.0f} evaluations/s, analysis {rate:10,.0f}, {positions:7,.1f} positions/s, "
            f"ratio {ratios[-1]:.3f}"
        )
    print(f"median ratio {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})")


if __name__ == "__main__":
    main()
