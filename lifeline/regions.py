"""Regions of empty cells and the groups around them, counted: what a convolution sees badly.

Who places last hangs on how much room is left in each region and to whom it belongs. Every cell is told of its own
region or group here, and of all regions together.
"""

from __future__ import annotations

import numpy as np

from lifeline.compiled import inlined_kernel, kernel, lowest_bit, popcount
from lifeline.kernels import (
    CANDIDATES,
    EMPTY,
    GROUP,
    ONE,
    OTHERS,
    OVER_BIT,
    REACH,
    REGION,
    TURN_MASK,
    ZERO,
    dilate,
    slot,
)
from lifeline.tactics import clear, load_with_empty, take_component

REGION_PLANES: tuple[tuple[str, str], ...] = (
    ("region_size", "empty cells of this one's region, divided by 8"),
    ("region_odd", "1 where the region of an empty cell has an odd number of them"),
    ("region_own_groups", "own groups that touch the region of an empty cell, divided by 4"),
    ("region_enemy_groups", "enemy groups that touch the region of an empty cell, divided by 4"),
    ("group_size", "stones of this one's group, divided by 8, if it touches empty cells"),
    ("group_regions", "regions that touch the group of a stone, divided by 4"),
    ("own_room", "empty cells of regions that touch own stones alone, divided by 8, everywhere"),
    ("own_room_odd", "1 everywhere if these are odd in number"),
    ("enemy_room", "empty cells of regions that touch enemy stones alone, divided by 8, everywhere"),
    ("enemy_room_odd", "1 everywhere if these are odd in number"),
    ("shared_room", "empty cells of regions that touch both, divided by 8, everywhere"),
    ("shared_room_odd", "1 everywhere if these are odd in number"),
)
"""Zero when the game is over."""
# What stands in planes 2 and 3 is of the region, in 4 and 5 of the group; rooms are three pairs from 6 on.
_SIZE, _ODD, _GROUPS, _GROUP_SIZE, _GROUP_REGIONS, _ROOM = 0, 1, 2, 4, 5, 6


@inlined_kernel
def count_cells(t, at, spec):
    """How many cells a slot has."""
    count = 0
    for i in range(len(spec.words)):
        count += np.int64(popcount(t[at + i]))
    return count


@inlined_kernel
def fill(t, at, plane, places, value, spec):
    """Write a value on the cells of a slot."""
    for i in range(len(spec.words)):
        word = t[at + i]
        while word != ZERO:
            plane[places[spec.bit_cell[64 * i + np.int64(lowest_bit(word))]]] = value
            word &= word - ONE


@kernel
def encode_regions(state, places, planes, work, spec):
    """Write the planes of a state, those of `REGION_PLANES` in their order.

    Args:
        state: uint64 [4 W + 1].
        places: int64 [N], places of the cells in the last axis of `planes`.
        planes: float32 [12, P], written at the cells' places only.
        work: a work buffer, overwritten.
    """
    num_words = len(spec.words)
    clear(planes, places, spec)
    meta = state[4 * num_words]
    if meta & OVER_BIT != ZERO:
        return
    load_with_empty(work, state, spec)
    empty, left, region = slot(EMPTY, spec), slot(CANDIDATES, spec), slot(REGION, spec)
    ring, stones_left, group = slot(REACH, spec), slot(OTHERS, spec), slot(GROUP, spec)
    own, enemy, shared = 0, 0, 0
    for i in range(num_words):
        work[left + i] = work[empty + i]
    while take_component(work, left, region, empty, spec):
        size = count_cells(work, region, spec)
        fill(work, region, planes[_SIZE], places, np.float32(size / 8), spec)
        fill(work, region, planes[_ODD], places, np.float32(size & 1), spec)
        dilate(work, region, ring, spec)
        touching = 0
        for side in range(2):
            stones = np.int64(meta & TURN_MASK & ONE ^ np.uint64(side)) * num_words
            for i in range(num_words):
                work[stones_left + i] = work[ring + i] & work[stones + i]
            count = 0
            while take_component(work, stones_left, group, stones, spec):
                count += 1
                fill(work, group, planes[_GROUP_SIZE], places, np.float32(count_cells(work, group, spec) / 8), spec)
                seen = planes[_GROUP_REGIONS]
                fill(work, group, seen, places, first_value(work, group, seen, places, spec) + np.float32(0.25), spec)
            if count > 0:
                touching += 1 + side
                fill(work, region, planes[_GROUPS + side], places, np.float32(count / 4), spec)
        if touching == 1:
            own += size
        elif touching == 2:
            enemy += size
        elif touching == 3:
            shared += size
    for cell in range(spec.num_cells):
        to = places[cell]
        planes[_ROOM, to], planes[_ROOM + 1, to] = np.float32(own / 8), np.float32(own & 1)
        planes[_ROOM + 2, to], planes[_ROOM + 3, to] = np.float32(enemy / 8), np.float32(enemy & 1)
        planes[_ROOM + 4, to], planes[_ROOM + 5, to] = np.float32(shared / 8), np.float32(shared & 1)


@inlined_kernel
def first_value(t, at, plane, places, spec):
    """What a plane has on the first cell of a slot, which has one."""
    i = 0
    while t[at + i] == ZERO:
        i += 1
    return plane[places[spec.bit_cell[64 * i + np.int64(lowest_bit(t[at + i]))]]]
