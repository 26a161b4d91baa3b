"""Streams of random numbers that a kernel can draw from, one a game, so that no game depends on its neighbours.

A stream is one word. A key from a `numpy.random.Generator` starts it; `derive` makes a fresh key for each ply.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lifeline.compiled import kernel

UInt64Array = npt.NDArray[np.uint64]


@kernel
def next_random(stream):
    """The next 64 random bits of a stream, uint64 [1], updated in place. Source: SplitMix64 (Steele et al. 2014)."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    x = stream[0]
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return x ^ x >> np.uint64(31)


@kernel
def random_below(stream, bound):
    """A random whole number in [0, bound), bound below 2**32, uniform to within 2**-32."""
    return np.int64((next_random(stream) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32))


@kernel
def random_unit(stream):
    """A random float64 in (0, 1)."""
    return (np.float64(next_random(stream) >> np.uint64(11)) + 0.5) / 9007199254740992.0


@kernel
def _derive(keys, counters, stream, out):
    for b in range(len(keys)):
        stream[0] = keys[b]
        stream[0] = next_random(stream) + np.uint64(counters[b])
        out[b] = next_random(stream)


def derive(keys: UInt64Array, counters: npt.NDArray[np.int64]) -> UInt64Array:
    """A key for each pair of key and counter: uint64 [B] from uint64 [B] and non-negative int64 [B]."""
    out = np.empty(len(keys), np.uint64)
    _derive(keys, counters, np.empty(1, np.uint64), out)
    return out


def draw_keys(rng: np.random.Generator, count: int) -> UInt64Array:
    """Fresh keys, uint64 [count]."""
    return rng.integers(0, 2**64, size=count, dtype=np.uint64)


@kernel
def _state_keys(seeds, states, stream, out):
    for b in range(len(seeds)):
        stream[0] = seeds[b]
        for word in states[b]:
            stream[0] = next_random(stream) ^ word
        out[b] = next_random(stream)


def state_keys(seeds: UInt64Array, states: UInt64Array) -> UInt64Array:
    """A key for each pair of seed and state: uint64 [B] from uint64 [B] and uint64 [B, W]."""
    out = np.empty(len(seeds), np.uint64)
    _state_keys(seeds, states, np.empty(1, np.uint64), out)
    return out
