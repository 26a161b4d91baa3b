"""Search small random games with mctx, the reference implementation of Gumbel search, and keep what it says.

    pip install mctx && python scripts/make_gumbel_golden.py --out tests/golden/gumbel_mctx.json.gz

A game is a table: from each state each legal action leads to a later state; states have a seat to move, so that one
player may move twice, logits and a value for whoever is to move; the last states are won by a seat.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

STATES, ACTIONS = 90, 6
FORBIDDEN = -1e9


def random_game(rng: np.random.Generator) -> dict[str, Any]:
    """A game as lists: actions lead to later states only, -1 where illegal; `won` is 0 or 1 in the last third."""
    last = 2 * STATES // 3
    child = np.full((STATES, ACTIONS), -1)
    for state in range(last):
        legal = rng.random(ACTIONS) < 0.7
        legal[rng.integers(ACTIONS)] = True
        for action in np.flatnonzero(legal):
            child[state, action] = rng.integers(state + 1, min(STATES, state + 25))
    return {
        "child": child.tolist(),
        "seat": rng.integers(0, 2, STATES).tolist(),
        "won": np.where(np.arange(STATES) < last, -1, rng.integers(0, 2, STATES)).tolist(),
        "logits": rng.normal(0, 1.5, (STATES, ACTIONS)).round(3).tolist(),
        "values": rng.uniform(-1, 1, STATES).round(3).tolist(),
    }


def search(game: dict[str, Any], simulations: int, considered: int, scale: float, seed: int) -> dict[str, Any]:
    """What mctx makes of the game's first state."""
    child, seat, won = (np.array(game[k]) for k in ("child", "seat", "won"))
    masked = jnp.array(np.where(child >= 0, np.array(game["logits"]), FORBIDDEN))
    values = jnp.array(np.where(won >= 0, 0.0, np.array(game["values"])))
    child, seat, won = jnp.array(child), jnp.array(seat), jnp.array(won)

    def step(params, rng_key, action, state):
        after = jnp.maximum(child[state, action], 0)
        # Whoever reaches a finished state again has the value of it already: nothing lies behind.
        over, ended = won[state] >= 0, won[after] >= 0
        reward = jnp.where(over | ~ended, 0.0, jnp.where(won[after] == seat[state], 1.0, -1.0))
        discount = jnp.where(over | ended, 0.0, jnp.where(seat[after] == seat[state], 1.0, -1.0))
        output = mctx.RecurrentFnOutput(
            reward=reward, discount=discount, prior_logits=masked[after], value=values[after]
        )
        return output, after

    root = mctx.RootFnOutput(prior_logits=masked[:1], value=values[:1], embedding=jnp.zeros(1, jnp.int32))
    found = mctx.gumbel_muzero_policy(
        None,
        jax.random.PRNGKey(seed),
        root,
        step,
        num_simulations=simulations,
        invalid_actions=child[:1] < 0,
        max_num_considered_actions=considered,
        gumbel_scale=scale,
        # Values in [-1, 1] and a scale of 0.1 are values in [0, 1] and a scale of 0.2.
        qtransform=lambda tree, node: mctx.qtransform_completed_by_mix_value(
            tree, node, value_scale=0.1, maxvisit_init=50, rescale_values=False
        ),
    )
    summary = found.search_tree.summary()
    return {
        "simulations": simulations,
        "considered": considered,
        "noise": np.asarray(found.search_tree.extra_data.root_gumbel[0]).tolist(),
        "action": int(found.action[0]),
        "policy": np.asarray(found.action_weights[0]).round(6).tolist(),
        "visits": np.asarray(summary.visit_counts[0]).astype(int).tolist(),
        "values": np.asarray(summary.qvalues[0]).round(6).tolist(),
    }


def main() -> None:
    """Make the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    cases = []
    for number in range(arguments.games):
        game = random_game(rng)
        searches = [
            search(game, simulations, considered, scale, number)
            for simulations, considered in ((2, 16), (3, 2), (8, 4), (16, 16), (33, 3), (64, 16), (150, 5))
            for scale in (0.0, 1.0)
        ]
        cases.append({"game": game, "searches": searches})
    data = {"made_with": f"mctx {mctx.__version__}, jax {jax.__version__}", "cases": cases}
    text = json.dumps(data, separators=(",", ":")).encode()
    arguments.out.write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main()
