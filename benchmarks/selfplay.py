"""Where the time of training goes: search without a network, self-play beside its network alone, and the learner.

    python benchmarks/selfplay.py [--config configs/base3.yaml] [--set KEY=VALUE ...] [--seconds 20]

The peer of self-play is its own evaluator on batches of the same size, which takes turns with it: their ratio, the
efficiency, holds on a busy machine too. `lifeline bench` prints the same figures one by one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from machine import headline

from lifeline.bench_search import search_rates
from training.bench import learner_rates, selfplay_rates
from training.config import load_config


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/base3.yaml"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting")
    parser.add_argument("--seconds", type=float, default=20.0, help="of self-play; half of it for each other figure")
    arguments = parser.parse_args()
    config, half = load_config(arguments.config, tuple(arguments.set)), arguments.seconds / 2
    print(headline())
    print(f"{arguments.config}, {' '.join([*arguments.set, ''])}{config.network}")
    search = search_rates(
        config.game.rules(), config.selfplay.batch_size, config.search.num_simulations, "gumbel", seconds=half
    )
    print(f"null evaluator:   {search.leaves_per_second:12,.0f} leaves/s ({search.low:,.0f}-{search.high:,.0f})")
    play = selfplay_rates(config, arguments.seconds)
    print(f"evaluator alone:  {play.forward_only_per_second:12,.0f} evaluations/s, batches of {play.mean_batch:.0f}")
    print(f"self-play:        {play.evaluations_per_second:12,.0f} evaluations/s, {play.games_per_hour:,.0f} games/h")
    print(f"efficiency:       {play.efficiency:12.3f} ({play.efficiency_low:.3f}-{play.efficiency_high:.3f})")
    learn = learner_rates(config, half)
    print(f"learner:          {learn.samples_per_second:12,.0f} samples/s on 1 thread")
    print(f"                  {learn.samples_per_second_all_cores:12,.0f} samples/s on {learn.cores}")


if __name__ == "__main__":
    main()
