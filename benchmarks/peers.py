"""The same work beside pgx and mctx, the field's fast environments and search, on one core of this machine.

    pip install '.[train,peers]' && python benchmarks/peers.py [--base 7] [--batch 64] [--simulations 32] [--seconds 5]

Work: Gumbel search (16 actions considered at the root) from mid-game positions, each leaf judged by a residual network.
Ours is Lifeline by BatchSearch with ONNX Runtime; the peer is Hex 11x11 by pgx, searched by mctx, with a network in
plain JAX, all of it compiled into one program. Both run in this process, which is held to one core, each with one
thread; they take turns in every round. Evaluations are rows the network has run; efficiency is the share of the
evaluations a second of the network alone, on the same batch, that a whole search reaches.

What is equal: batch, simulations, channels, the shapes of the heads, and, by the number of blocks, multiply-adds of the
convolutions (printed). What is not: the games (no Lifeline in JAX exists; base 7 has 127 cells and 129 actions, Hex
11x11 has 121 and 122); the grid, 13x13 against 11x11 (with --base 6 it is 11x11 in both, but only 91 cells); ours masks
activations and pools in every other block; the peer keeps float32 trees of whole states on XLA's terms, which are made
for accelerators, and evaluates finished games too. The evaluations a second of the networks tell about ONNX Runtime and
XLA on a CPU, not about the two programs; efficiency tells about the rest. Time to compile is left out, and printed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import torch
from machine import headline

from lifeline import BatchEnv, Rules
from lifeline.bench import rate
from lifeline.bench_search import mid_game_states, search_work
from lifeline.observation import NUM_PLANES
from lifeline.search.evaluator import OnnxEvaluator
from lifeline.search.gumbel import GumbelPolicy
from training.bench import CountingEvaluator
from training.config import NetworkConfig
from training.export import export_onnx
from training.network import Network


def hold_to_one_core() -> str:
    """Keep this process on one core and libraries on one thread, before they start any; returns what was done."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    torch.set_num_threads(1)
    if not hasattr(os, "sched_setaffinity"):
        return f"not held to one core (the system cannot), XLA_FLAGS {flags}"
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return f"held to core {core}, XLA_FLAGS {flags}"


def multiply_adds(places: int, planes: int, blocks: int, channels: int, head: int) -> float:
    """Of a network's convolutions over a grid, for one position: 3x3 ones with all nine taps, on and off the board."""
    return places * (9.0 * planes * channels + blocks * 2 * 9 * channels**2 + 2 * channels * head + head)


class Ours:
    """Searches a batch of Lifeline positions, always the same.

    Attributes:
        places: of the grid. compile_seconds: spent on kernels, a second or so where they are cached.
    """

    def __init__(self, base: int, network: NetworkConfig, batch: int, num_simulations: int) -> None:
        rules = Rules(base)
        began = time.perf_counter()
        torch.manual_seed(0)
        self._evaluator = CountingEvaluator(OnnxEvaluator(export_onnx(network, Network(network).state_dict()), 1).run)
        self._search = search_work(rules, batch, num_simulations, GumbelPolicy(), self._evaluator)
        env = BatchEnv(rules, batch)
        env.scatter(None, mid_game_states(rules, batch, np.random.default_rng(0)))
        self._planes = env.observation.copy()
        self.places, self.num_actions = env.grid_shape[0] * env.grid_shape[1], env.num_actions
        self.search()
        self.compile_seconds = time.perf_counter() - began

    def search(self) -> float:
        """Search the batch once; returns the network's evaluations."""
        before = self._evaluator.rows
        self._search()
        return float(self._evaluator.rows - before)

    def forward(self) -> float:
        """Evaluate the batch once; returns the evaluations."""
        self._evaluator.run(self._planes)
        return float(len(self._planes))


def show(name: str, values: list[float], text: str, unit: str) -> str:
    """One line: median and spread."""
    numbers = [format(v, text) for v in (float(np.median(values)), min(values), max(values))]
    return f"{name:<28} {numbers[0]:>10} {unit} ({numbers[1]}-{numbers[2]})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=int, default=7)
    parser.add_argument("--blocks", type=int, default=5, help="of our network")
    parser.add_argument("--channels", type=int, default=64, help="of both")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each figure in each round")
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    held = hold_to_one_core()
    try:
        from hex_peer import PLACES, VERSIONS, HexPeer
    except ModuleNotFoundError as error:
        raise SystemExit(f"peers.py needs {error.name}, which is not installed: pip install '.[train,peers]'") from None
    network = NetworkConfig(blocks=a.blocks, channels=a.channels)
    head = network.head_channels
    ours = Ours(a.base, network, a.batch, a.simulations)
    blocks = max(1, round(a.blocks * ours.places / PLACES))
    peer = HexPeer(blocks, a.channels, head, network.value_hidden, a.batch, a.simulations)
    work = {
        "ours": multiply_adds(ours.places, NUM_PLANES, a.blocks, a.channels, head),
        "peer": multiply_adds(PLACES, peer.planes, blocks, a.channels, head),
    }
    print(headline())
    print(f"{held}; {VERSIONS}")
    print(f"batch {a.batch}, {a.simulations} simulations, {a.rounds} rounds of {a.seconds:g} s for each figure")
    for name, side, depth, what in (
        ("ours", ours, a.blocks, f"Lifeline base {a.base}"),
        ("peer", peer, blocks, "Hex 11x11"),
    ):
        print(
            f"{name}: {what}, {side.num_actions} actions, {depth} blocks of {a.channels} channels, "
            f"{work[name] / 1e6:.1f} million multiply-adds, {side.compile_seconds:.0f} s to get ready"
        )
    turns: dict[tuple[str, str], Callable[[], float]] = {
        ("peer", "search"): peer.search,
        ("ours", "search"): ours.search,
        ("peer", "forward"): peer.forward,
        ("ours", "forward"): ours.forward,
    }
    rates: dict[tuple[str, str], list[float]] = {turn: [] for turn in turns}
    for turn in turns.values():
        turn()
    for _ in range(a.rounds):
        for key, turn in turns.items():
            rates[key] += list(rate(turn, a.seconds, 1))
    for name in ("ours", "peer"):
        whole, alone = rates[name, "search"], rates[name, "forward"]
        print(show(f"{name}, whole search", whole, ",.0f", "evaluations/s"))
        print(show(f"{name}, network alone", alone, ",.0f", "evaluations/s"))
        print(show(f"{name}, efficiency", [w / f for w, f in zip(whole, alone, strict=True)], ".3f", ""))
        micros = [1e6 / w - 1e6 / f for w, f in zip(whole, alone, strict=True)]
        print(show(f"{name}, all but the network", micros, ",.1f", "us an evaluation"))
        print(show(f"{name}, network alone", [2e-9 * work[name] * f for f in alone], ".1f", "GFLOP/s"))
    for kind, text in (("search", "whole search"), ("forward", "network alone")):
        pairs = zip(rates["ours", kind], rates["peer", kind], strict=True)
        print(show(f"ours / peer, {text}", [o / p for o, p in pairs], ".2f", "times"))


if __name__ == "__main__":
    main()
