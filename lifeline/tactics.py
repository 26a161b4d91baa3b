"""What a placement would remove, and which groups live by a single link: what a convolution sees badly.

Whether a group lives is a matter of paths across the whole board, so a network of local layers must be deep to see it;
the kernels know it exactly and cheaply.
"""

from __future__ import annotations

import numpy as np

from lifeline.compiled import inlined_kernel, kernel, lowest_bit, popcount
from lifeline.kernels import (
    CANDIDATES,
    DEAD,
    EMPTY,
    GROUP,
    ONE,
    OTHERS,
    OVER_BIT,
    REACH,
    REGION,
    TURN_MASK,
    ZERO,
    covers,
    dilate,
    flood,
    load,
    place_in_play,
    ring_code,
    slot,
)

TACTICAL_PLANES: tuple[tuple[str, str], ...] = (
    ("own_captures", "stones that the other side would lose by a placement here, divided by 4"),
    ("own_losses", "stones that the colour to place would lose by a placement here, divided by 4"),
    ("enemy_captures", "stones that the colour to place would lose if the other side placed here, divided by 4"),
    ("enemy_losses", "stones that the other side would lose itself if it placed here, divided by 4"),
    ("own_single_link", "stones of own groups that live by one other group alone"),
    ("enemy_single_link", "stones of enemy groups that live by one other group alone"),
    ("own_groups", "number of own groups, divided by 8"),
    ("enemy_groups", "number of enemy groups, divided by 8"),
)
"""Zero during the opening, when other things are removed, and when the game is over."""


@inlined_kernel
def clear(planes, places, spec):
    """Write zeros at the cells' places of all planes."""
    for plane in range(len(planes)):
        for cell in range(spec.num_cells):
            planes[plane, places[cell]] = 0


@inlined_kernel
def take_component(t, left, target, within, spec):
    """Move one component of t[within] that has a cell in t[left] to t[target], off t[left]; false if none has."""
    num_words = len(spec.words)
    at = 0
    while at < num_words and t[left + at] == ZERO:
        at += 1
    if at == num_words:
        return False
    for i in range(num_words):
        t[target + i] = ZERO
    t[target + at] = ONE << lowest_bit(t[left + at])
    flood(t, target, within, spec)
    for i in range(num_words):
        t[left + i] &= ~t[target + i]
    return True


@kernel
def load_with_empty(t, state, spec):
    """Copy a state row to the front of a work buffer and find its empty cells."""
    num_words = len(spec.words)
    load(t, state)
    empty = slot(EMPTY, spec)
    for i in range(num_words):
        t[empty + i] = spec.board[i] & ~(t[i] | t[num_words + i])


@kernel
def removals(state, cell, colour, work, spec):
    """The stones that a placement after the opening would remove: (enemy stones, own stones, the new one included).

    Args:
        state: uint64 [4 W + 1].
        cell: legal for the colour, were it to place.
        work: a work buffer with that state in front and its EMPTY; overwritten, but made good again.
    """
    num_words = len(spec.words)
    own, enemy = colour * num_words, (1 - colour) * num_words
    empty_ring = ring_code(work, slot(EMPTY, spec), cell, spec)
    enemy_ring = ring_code(work, enemy, cell, spec)
    if spec.verdict[enemy_ring << 6 | empty_ring] == 0 and spec.arcs[ring_code(work, own, cell, spec)] <= 1:
        return 0, 0
    place_in_play(work, cell, colour, spec)
    taken, lost = 0, 1
    for i in range(num_words):
        taken += np.int64(popcount(state[enemy + i])) - np.int64(popcount(work[enemy + i]))
        lost += np.int64(popcount(state[own + i])) - np.int64(popcount(work[own + i]))
    load_with_empty(work, state, spec)
    return taken, lost


@kernel
def find_single_links(t, colour, spec):
    """Collect in REGION the stones of a colour's groups that empty cells join to exactly one other group of it.

    Reads EMPTY; overwrites CANDIDATES, DEAD, GROUP, REACH and OTHERS. Returns the number of the colour's groups.
    """
    num_words = len(spec.words)
    stones = colour * num_words
    empty, group, reach, others = slot(EMPTY, spec), slot(GROUP, spec), slot(REACH, spec), slot(OTHERS, spec)
    linked, left, one = slot(REGION, spec), slot(CANDIDATES, spec), slot(DEAD, spec)
    for i in range(num_words):
        t[linked + i] = ZERO
        t[left + i] = t[stones + i]
    count = 0
    while take_component(t, left, group, stones, spec):
        count += 1
        dilate(t, group, reach, spec)
        for i in range(num_words):
            t[reach + i] &= t[empty + i]
        flood(t, reach, empty, spec)
        dilate(t, reach, others, spec)
        word = -1
        for i in range(num_words):
            t[others + i] &= t[stones + i] & ~t[group + i]
            t[one + i] = ZERO
            if t[others + i] != ZERO:
                word = i
        if word < 0:
            continue
        t[one + word] = ONE << lowest_bit(t[others + word])
        flood(t, one, stones, spec)
        if covers(t, one, others, spec):
            for i in range(num_words):
                t[linked + i] |= t[group + i]
    return count


@kernel
def encode_tactics(state, places, planes, work, spec):
    """Write the planes of a state, those of `TACTICAL_PLANES` in their order.

    Args:
        state: uint64 [4 W + 1].
        places: int64 [N], places of the cells in the last axis of `planes`.
        planes: float32 [8, P], written at the cells' places only.
        work: a work buffer, overwritten.
    """
    num_words = len(spec.words)
    clear(planes, places, spec)
    meta = state[4 * num_words]
    turn = np.int64(meta & TURN_MASK)
    if turn < spec.opening_turns or meta & OVER_BIT != ZERO:
        return
    load_with_empty(work, state, spec)
    linked = slot(REGION, spec)
    for side in range(2):
        colour = turn & 1 ^ side
        for i in range(num_words):
            word = state[(2 + colour) * num_words + i]
            while word != ZERO:
                cell = spec.bit_cell[64 * i + np.int64(lowest_bit(word))]
                word &= word - ONE
                taken, lost = removals(state, cell, colour, work, spec)
                planes[2 * side, places[cell]] = np.float32(taken / 4)
                planes[2 * side + 1, places[cell]] = np.float32(lost / 4)
        count = np.float32(find_single_links(work, colour, spec) / 8)
        for i in range(num_words):
            word = work[linked + i]
            while word != ZERO:
                cell = spec.bit_cell[64 * i + np.int64(lowest_bit(word))]
                word &= word - ONE
                planes[4 + side, places[cell]] = 1
        for cell in range(spec.num_cells):
            planes[6 + side, places[cell]] = count
