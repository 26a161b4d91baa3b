"""Judge models of small boards by the exact solver.

    python scripts/grade.py runs/NAME/bot.onnx [--base 3] [--positions 4000] [--simulations 16 64]

Positions are reached by random play after the first turns, all different, and solved exactly. Printed are the share of
won positions in which the chosen move keeps the win, by the raw policy and by search, and the share of all positions,
won and lost, in which the value has the right sign.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from lifeline import BatchEnv, Rules
from lifeline.search.evaluator import OnnxEvaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.search import BatchSearch
from lifeline.solver import Solver


def solved_positions(rules: Rules, count: int, seed: int) -> tuple[BatchEnv, np.ndarray, np.ndarray]:
    """Games, their values for the player to move (bool: won), and the winning actions (bool [B, A])."""
    rng, env = np.random.default_rng(seed), BatchEnv(rules, 4 * count)
    env.step_random(rng.integers(5, rules.num_cells, env.batch_size), rng.integers(0, 2**64, 1, dtype=np.uint64))
    states = np.unique(env.gather(np.flatnonzero(~env.terminated)), axis=0)
    states = states[states[:, -1] & np.uint64(0xFFFF) >= 2]  # both first turns are over
    states = rng.permutation(states)[:count]
    games = BatchEnv(rules, len(states))
    games.scatter(None, states)
    solver, winning = Solver(rules, table_bits=22), np.zeros((len(states), rules.num_actions), np.bool_)
    for row, mask in enumerate(games.legal_action_mask):
        actions = np.flatnonzero(mask)
        after = BatchEnv(rules, len(actions))
        after.scatter(None, np.tile(states[row], (len(actions), 1)))
        after.step(actions)
        winning[row, actions] = [solver.value(state) == -1 for state in after.gather()]
    return games, winning.any(axis=1), winning


def main() -> None:
    """Grade each model named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--base", type=int, default=3, help="3; larger boards take the solver too long")
    parser.add_argument("--positions", type=int, default=4000)
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rules = Rules(arguments.base)
    games, won, winning = solved_positions(rules, arguments.positions, arguments.seed)
    size, rows = games.batch_size, np.arange(games.batch_size)
    print(f"{size} positions of base {rules.base}, {won.mean():.1%} won")
    for path in arguments.models:
        evaluator = OnnxEvaluator(path, threads=0)
        logits, values = evaluator.evaluate(games)
        chosen = {"raw": np.where(games.legal_action_mask, logits, -np.inf).argmax(axis=1)}
        signs = {"raw": (values > 0) == won}
        for count in arguments.simulations:
            policy = GumbelPolicy(GumbelConstants(noise=0))
            result = BatchSearch(lambda: BatchEnv(rules, size), evaluator, policy, count).run(
                games, np.zeros(size, np.uint64)
            )
            chosen[str(count)], signs[str(count)] = result.actions, (result.root_value > 0) == won
        for name, actions in chosen.items():
            kept = winning[rows, actions][won].mean()
            print(f"{path}  simulations {name:>5}: keeps the win {kept:.1%}, value sign right {signs[name].mean():.1%}")


if __name__ == "__main__":
    main()
