"""What a network sees of a position: one table of planes, one encoder.

Everything is told from the side of the colour to place. Planes that are constant over a board carry what no single
cell shows; in the openings a run does not use they stay zero, so that one network can learn all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from lifeline.board import Board
from lifeline.compiled import kernel
from lifeline.kernels import (
    KOMI_MASK,
    KOMI_SHIFT,
    ONE,
    PLACED_BIT,
    STRONG_PIE,
    TURN_MASK,
    ZERO,
    may_swap,
)
from lifeline.regions import REGION_PLANES, encode_regions
from lifeline.tactics import TACTICAL_PLANES, encode_tactics

# Raised whenever the meaning of a plane changes; a model is used only with the version it was trained on. New planes
# come last, and change nothing for models that see those before.
OBSERVATION_VERSION = 2

PLANES: tuple[tuple[str, str], ...] = (
    ("board", "1 on every cell of the board, 0 off it"),
    ("own", "stones of the colour to place"),
    ("enemy", "stones of the other colour"),
    ("own_reach", "empty cells whose region touches an own stone: the legal placements after the opening"),
    ("enemy_reach", "empty cells whose region touches an enemy stone"),
    ("second_stone", "1 everywhere when a stone of this turn has been placed already"),
    ("opening_left", "turns left of the opening, divided by 4"),
    ("swap_open", "1 everywhere when the mover may swap sides"),
    ("no_adjacent", "1 everywhere while a player's second stone may not touch the first"),
    ("own_komi", "points of komi the mover may still spend, divided by 10"),
    ("enemy_komi", "points of komi the other side may still spend, divided by 10"),
    *TACTICAL_PLANES,
    *REGION_PLANES,
)
NUM_PLANES = len(PLANES)
NUM_TACTICAL_PLANES = NUM_PLANES - len(REGION_PLANES)
"""The planes before those of regions, which come last."""
NUM_PLAIN_PLANES = NUM_TACTICAL_PLANES - len(TACTICAL_PLANES)
"""The planes before the tactical ones."""


@kernel
def encode_planes(states, maps, choice, planes, work, spec):
    """Write the planes of each state.

    Args:
        states: uint64 [B, 4 W + 1].
        maps: int64 [M, N], places of the cells in the last axis of `planes`.
        choice: int64 [B], which map each state uses.
        planes: float32 [B, C, P], written at the cells' places only: zeros elsewhere are the caller's.
        work: a work buffer, overwritten.
    """
    num_words = len(spec.words)
    for b in range(len(states)):
        meta = states[b, 4 * num_words]
        turn = np.int64(meta & TURN_MASK)
        colour = turn & 1
        own, enemy = colour * num_words, (1 - colour) * num_words
        own_reach, enemy_reach = (2 + colour) * num_words, (3 - colour) * num_words
        in_opening = turn < spec.opening_turns
        second = np.float32(1.0) if meta & PLACED_BIT != ZERO else np.float32(0.0)
        left = np.float32((spec.opening_turns - turn) / 4) if in_opening else np.float32(0.0)
        swap = np.float32(1.0) if may_swap(meta, spec) else np.float32(0.0)
        apart = spec.opening == STRONG_PIE or spec.adjacent_forbidden == 1
        no_adjacent = np.float32(1.0) if in_opening and apart else np.float32(0.0)
        komi = np.float32(np.int64(meta >> KOMI_SHIFT & KOMI_MASK) / 10)
        own_komi = komi if colour == 1 else np.float32(0.0)
        enemy_komi = komi if colour == 0 else np.float32(0.0)
        for cell in range(spec.num_cells):
            to = maps[choice[b], cell]
            word = spec.cell_bit[cell] >> 6
            shift = np.uint64(spec.cell_bit[cell] & 63)
            planes[b, 0, to] = 1.0
            planes[b, 1, to] = np.float32(states[b, own + word] >> shift & ONE)
            planes[b, 2, to] = np.float32(states[b, enemy + word] >> shift & ONE)
            planes[b, 3, to] = np.float32(states[b, own_reach + word] >> shift & ONE)
            planes[b, 4, to] = np.float32(states[b, enemy_reach + word] >> shift & ONE)
            planes[b, 5, to] = second
            planes[b, 6, to] = left
            planes[b, 7, to] = swap
            planes[b, 8, to] = no_adjacent
            planes[b, 9, to] = own_komi
            planes[b, 10, to] = enemy_komi
        encode_tactics(states[b], maps[choice[b]], planes[b, NUM_PLAIN_PLANES:NUM_TACTICAL_PLANES], work, spec)
        encode_regions(states[b], maps[choice[b]], planes[b, NUM_TACTICAL_PLANES:], work, spec)


@cache
def grid_maps(geometry: Board) -> npt.NDArray[np.int64]:
    """int64 [12, N]: where each cell lies on the flattened grid under each symmetry; row 0 is the identity."""
    return geometry.cell_to_grid[geometry.symmetries]
