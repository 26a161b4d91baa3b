"""The peer's side of peers.py: Hex 11x11 by pgx, Gumbel search by mctx, a residual network in plain JAX, all compiled
into one program by XLA. Import it only where threads have been limited: JAX makes its own when it is imported.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx

SIDE = 11
PLACES = SIDE * SIDE
# No game of Hex ends before; from random plies hardly any does within half of the board.
_MOST_PLIES = PLACES // 2
_CONSIDERED = 16

VERSIONS = f"pgx {pgx.__version__}, mctx {mctx.__version__}, jax {jax.__version__}"


def _conv(x: Any, kernel: Any) -> Any:
    """[B, H, W, in] by [k, k, in, out] to [B, H, W, out]."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def new_parameters(planes: int, blocks: int, channels: int, head: int, hidden: int) -> dict[str, Any]:
    """Random weights, small enough that numbers stay finite through any number of blocks."""
    shapes: dict[str, tuple[int, ...]] = {"stem": (3, 3, planes, channels)}
    shapes |= {f"{part}{i}": (3, 3, channels, channels) for i in range(blocks) for part in ("first", "second")}
    shapes |= {"policy": (1, 1, channels, head), "policy_out": (1, 1, head, 1), "swap": (head, 1)}
    shapes |= {"value": (1, 1, channels, head), "value_hidden": (head, hidden), "value_out": (hidden, 1)}
    keys = jax.random.split(jax.random.PRNGKey(0), len(shapes))
    return {
        name: 0.5 * jax.random.normal(key, shape) / jnp.sqrt(jnp.prod(jnp.array(shape[:-1])))
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def forward(parameters: dict[str, Any], observation: Any) -> tuple[Any, Any]:
    """Logits float32 [B, A] and values float32 [B] for pgx's observation, bool [B, 11, 11, planes]."""
    p = parameters
    x = _conv(observation.astype(jnp.float32), p["stem"])
    for i in range(sum(name.startswith("first") for name in p)):
        y = jax.nn.relu(_conv(jax.nn.relu(x), p[f"first{i}"]))
        x = x + _conv(y, p[f"second{i}"])
    x = jax.nn.relu(x)
    policy = jax.nn.relu(_conv(x, p["policy"]))
    cells = _conv(policy, p["policy_out"]).reshape(len(x), -1)
    logits = jnp.concatenate([cells, policy.mean(axis=(1, 2)) @ p["swap"]], axis=1)
    pooled = jax.nn.relu(_conv(x, p["value"])).mean(axis=(1, 2))
    return logits, jnp.tanh(jax.nn.relu(pooled @ p["value_hidden"]) @ p["value_out"])[:, 0]


class HexPeer:
    """Searches a batch of Hex positions, always the same.

    Args:
        blocks, channels, head, hidden: of its network. batch: positions. num_simulations: for each.

    Attributes:
        planes: that its network sees. num_actions: A. compile_seconds: spent before anything ran.
    """

    def __init__(self, blocks: int, channels: int, head: int, hidden: int, batch: int, num_simulations: int) -> None:
        env = pgx.make("hex")
        self.planes, self.num_actions = env.observation_shape[-1], env.num_actions
        self._batch, self._evaluations = batch, batch * (num_simulations + 1)
        self._parameters = new_parameters(self.planes, blocks, channels, head, hidden)
        self._key = jax.random.PRNGKey(1)

        def masked(parameters: Any, state: Any) -> tuple[Any, Any]:
            logits, value = forward(parameters, state.observation)
            return jnp.where(state.legal_action_mask, logits, jnp.finfo(jnp.float32).min), value

        def grow(parameters: Any, key: Any, action: Any, state: Any) -> tuple[Any, Any]:
            mover = state.current_player
            state = jax.vmap(env.step)(state, action)
            logits, value = masked(parameters, state)
            output = mctx.RecurrentFnOutput(
                reward=jnp.take_along_axis(state.rewards, mover[:, None], axis=1)[:, 0],
                discount=jnp.where(state.terminated, 0.0, -1.0),
                prior_logits=logits,
                value=jnp.where(state.terminated, 0.0, value),
            )
            return output, state

        def search(parameters: Any, key: Any, state: Any) -> Any:
            logits, value = masked(parameters, state)
            return mctx.gumbel_muzero_policy(
                parameters,
                key,
                mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
                grow,
                num_simulations,
                invalid_actions=~state.legal_action_mask,
                max_num_considered_actions=_CONSIDERED,
            ).action

        def mid_games(key: Any) -> Any:
            first, second, third = jax.random.split(key, 3)
            plies = jax.random.randint(first, (batch,), 0, _MOST_PLIES)

            def ply(i: Any, state: Any) -> Any:
                noise = jax.random.uniform(jax.random.fold_in(second, i), state.legal_action_mask.shape)
                action = jnp.argmax(jnp.where(state.legal_action_mask, noise, -1.0), axis=1)
                after = jax.vmap(env.step)(state, action)

                def later(a: Any, b: Any) -> Any:
                    return jnp.where((i < plies).reshape(-1, *(1,) * (a.ndim - 1)), a, b)

                return jax.tree.map(later, after, state)

            return jax.lax.fori_loop(0, _MOST_PLIES, ply, jax.vmap(env.init)(jax.random.split(third, batch)))

        began = time.perf_counter()
        self._state = jax.jit(mid_games)(jax.random.PRNGKey(2))
        self._forward = jax.jit(forward).lower(self._parameters, self._state.observation).compile()
        self._search = jax.jit(search).lower(self._parameters, self._key, self._state).compile()
        jax.block_until_ready(self._state)
        self.compile_seconds = time.perf_counter() - began

    def search(self) -> float:
        """Search the batch once; returns the network's evaluations."""
        self._key, key = jax.random.split(self._key)
        jax.block_until_ready(self._search(self._parameters, key, self._state))
        return float(self._evaluations)

    def forward(self) -> float:
        """Evaluate the batch once; returns the evaluations."""
        jax.block_until_ready(self._forward(self._parameters, self._state.observation))
        return float(self._batch)
