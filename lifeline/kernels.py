"""The rules as compiled kernels over bitboards: the fast twin of rules.py, held to it by tests.

A *state* is a row of 4 W + 1 words of 64 bits: black stones, white stones, for each colour the empty cells whose
region touches it (`reach`), and a word of counters (`meta`). A cell is one bit: rows of 2n bits, one bit of padding a
row, so that a shift by 1, 2n or 2n - 1 moves every stone to a neighbouring cell and nothing wraps round.

In ordinary play every group is alive before a placement, and that carries far (docs/rules.md gives the proofs):
  - the legal placements are the mover's `reach`;
  - if the empty neighbours of the new stone form one arc, its region stays connected;
  - an enemy group beside the new stone still touches the region if an empty cell flanks it there;
  - of the mover's groups only the one the new stone joins can die, and only if it joins two or more.
The rest is found by flooding, which stops as soon as it has seen enough. Kernels work on a copy of the state in a work
buffer of `work_size(W)` words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lifeline.compiled import inlined_kernel, kernel, lowest_bit, popcount
from lifeline.rules import OPENINGS, Position, Rules
from lifeline.streams import random_below

UInt64Array = npt.NDArray[np.uint64]

STRONG_PIE, WEAK_PIE, KOMI_PIE = (OPENINGS.index(o) for o in ("strong_pie", "weak_pie", "komi_pie"))

# Fields of the meta word.
TURN_MASK = np.uint64(0xFFFF)
PLACED_BIT = np.uint64(1 << 16)
SWAPPED_BIT = np.uint64(1 << 17)
OVER_BIT = np.uint64(1 << 18)
KOMI_SHIFT = np.uint64(24)
KOMI_MASK = np.uint64(0xFF)
ONE_KOMI = np.uint64(1 << 24)

ZERO = np.uint64(0)
ONE = np.uint64(1)
WORD = np.uint64(64)
LAST_BIT = np.uint64(63)

# Work slots behind the state, each of W words.
EMPTY, REGION, CANDIDATES, DEAD, GROUP, REACH, OTHERS, NUM_SLOTS = range(8)

# Of a verdict on the ring around a new stone, see `Spec`.
CUT_OFF = 63
SEVERAL = 64

# Boards of up to this many words get kernels of their own, in which the compiler unrolls every loop over words.
_UNROLLED_WORDS = 3


class Spec(NamedTuple):
    """What the kernels need to know of a `Rules`.

    Attributes:
        words: W entries of which only the number counts: a tuple on small boards, where the compiler then knows W,
            an array on larger ones.
        stride: bits in a row, 2n.
        num_cells: N.
        opening: index in rules.OPENINGS.
        adjacent_forbidden: whether a second stone may not touch the first in weak and komi pie.
        opening_turns: turns the opening takes.
        cell_bit: int64 [N], the bit of each cell.
        bit_cell: int64 [64 W], the cell of each bit, -1 for padding.
        ring_bit: int64 [N, 6], bits of the neighbours in cyclic order; off the board, a bit that is never set.
        board: uint64 [W], all cells.
        arcs: int64 [64], number of cyclic runs of set bits in a six-bit ring code.
        verdict: uint8 [4096], by (enemies << 6 | empty) of the ring around a new stone: the bits of CUT_OFF are the
            first of each run of enemies that has no empty cell at either end; SEVERAL says that the empty neighbours
            are several runs. Where it is 0, no enemy dies.
    """

    words: Any
    stride: np.uint64
    num_cells: int
    opening: int
    adjacent_forbidden: int
    opening_turns: int
    cell_bit: npt.NDArray[np.int64]
    bit_cell: npt.NDArray[np.int64]
    ring_bit: npt.NDArray[np.int64]
    board: UInt64Array
    arcs: npt.NDArray[np.int64]
    verdict: npt.NDArray[np.uint8]


def state_size(words: int) -> int:
    """Words in a state row."""
    return 4 * words + 1


def longest_game(rules: Rules) -> int:
    """Plies for which there is room: a game fills a cell or spends a point each turn, but for captures.

    Longer ones are possible, but do not come up.
    """
    return 4 * rules.num_cells


def work_size(words: int) -> int:
    """Words in a work buffer: a state and the slots behind it."""
    return state_size(words) + NUM_SLOTS * words


def _ring_tables() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """The tables `Spec.arcs` and `Spec.verdict`."""
    arcs = np.zeros(64, np.int64)
    verdict = np.zeros(4096, np.uint8)
    for code in range(64):
        bits = [code >> k & 1 for k in range(6)]
        arcs[code] = 1 if code == 63 else sum(bits[k] and not bits[k - 1] for k in range(6))
    for enemy in range(64):
        for empty in range(64):
            if enemy & empty:
                continue
            found = SEVERAL if arcs[empty] > 1 else 0
            for start in range(6):
                first = start == 0 if enemy == 63 else enemy >> start & 1 and not enemy >> (start - 1) % 6 & 1
                if not first:
                    continue
                end = start
                while enemy != 63 and enemy >> (end + 1) % 6 & 1:
                    end += 1
                if not (empty >> (start - 1) % 6 & 1 or empty >> (end + 1) % 6 & 1):
                    found |= 1 << start
            verdict[enemy << 6 | empty] = found
    return arcs, verdict


@lru_cache(maxsize=64)
def spec_of(rules: Rules) -> Spec:
    """The kernels' view of the rules; one object for equal rules (the komi does not matter, it is in the state)."""
    geometry, n = rules.board, rules.base
    stride = 2 * n
    words = -(-stride * (2 * n - 1) // 64)
    cell_bit = np.array([(z + n - 1) * stride + (q + n - 1) for q, z in geometry.coords], np.int64)
    bit_cell = np.full(64 * words, -1, np.int64)
    bit_cell[cell_bit] = np.arange(rules.num_cells)
    padding_bit = 2 * n - 1  # the last bit of the top row
    ring_bit = np.where(geometry.ring >= 0, cell_bit[geometry.ring], padding_bit)
    full = np.zeros(words, np.uint64)
    for bit in cell_bit:
        full[bit >> 6] |= np.uint64(1 << (int(bit) & 63))
    arcs, verdict = _ring_tables()
    return Spec(
        words=(0,) * words if words <= _UNROLLED_WORDS else np.zeros(words, np.int64),
        stride=np.uint64(stride),
        num_cells=rules.num_cells,
        opening=OPENINGS.index(rules.opening),
        adjacent_forbidden=int(rules.adjacent_setup == "forbidden"),
        opening_turns=rules.opening_turns,
        cell_bit=cell_bit,
        bit_cell=bit_cell,
        ring_bit=ring_bit,
        board=full,
        arcs=arcs,
        verdict=verdict,
    )


def encode_position(position: Position) -> UInt64Array:
    """The state row of a position: uint64 [4 W + 1]."""
    spec = spec_of(position.rules)
    words = len(spec.words)
    work = np.zeros(work_size(words), np.uint64)
    for cell, stone in enumerate(position.stones):
        if stone != ".":
            bit = int(spec.cell_bit[cell])
            work["bw".index(stone) * words + (bit >> 6)] |= np.uint64(1 << (bit & 63))
    meta = position.turn | position.placed << 16 | int(position.swapped) << 17 | int(position.is_over) << 18
    work[4 * words] = np.uint64(meta | position.komi << 24)
    refresh_reach(work, spec)
    return work[: state_size(words)].copy()


def decode_state(state: UInt64Array, rules: Rules) -> Position:
    """The position of a state row."""
    spec = spec_of(rules)
    words = len(spec.words)
    boards = [sum(int(w) << 64 * i for i, w in enumerate(state[c * words : (c + 1) * words])) for c in (0, 1)]
    stones = tuple("b" if boards[0] >> int(b) & 1 else "w" if boards[1] >> int(b) & 1 else "." for b in spec.cell_bit)
    meta = int(state[4 * words])
    return Position(rules, stones, meta & 0xFFFF, meta >> 16 & 1, bool(meta >> 17 & 1), meta >> 24 & 0xFF)


@kernel
def dilate(t, source, target, spec):
    """t[target] = the cells of t[source] and their neighbours, padding included: mask it. Slots may not overlap."""
    num_words = len(spec.words)
    s = spec.stride
    r = s - ONE
    for i in range(num_words):
        v = t[source + i]
        n = v | v << ONE | v >> ONE | v << s | v >> s | v << r | v >> r
        if i > 0:
            low = t[source + i - 1]
            n |= low >> LAST_BIT | low >> (WORD - s) | low >> (WORD - r)
        if i + 1 < num_words:
            high = t[source + i + 1]
            n |= high << LAST_BIT | high << (WORD - s) | high << (WORD - r)
        t[target + i] = n


@kernel
def grow_word(t, target, mask, i, grown_before, spec):
    """Grow word i of t[target] within t[mask] from its neighbouring words and itself, as far as it goes; in place.

    Returns whether it has changed. `grown_before` says that it has been grown from itself already.
    """
    num_words = len(spec.words)
    s = spec.stride
    r = s - ONE
    m = t[mask + i]
    v = t[target + i]
    grown = v
    if i > 0:
        low = t[target + i - 1]
        grown |= low >> LAST_BIT | low >> (WORD - s) | low >> (WORD - r)
    if i + 1 < num_words:
        high = t[target + i + 1]
        grown |= high << LAST_BIT | high << (WORD - s) | high << (WORD - r)
    grown &= m
    if grown_before and grown == v:
        return False
    while True:
        n = (grown | grown << ONE | grown >> ONE) & m
        n = (n | n << s | n >> s | n << r | n >> r) & m
        if n == grown:
            break
        grown = n
    t[target + i] = grown
    return grown != v


@kernel
def flood(t, target, mask, spec):
    """Grow t[target], a subset of t[mask], to all cells of t[mask] connected to it; in place."""
    num_words = len(spec.words)
    if num_words == 1:
        grow_word(t, target, mask, 0, False, spec)
        return
    grown_before = False
    changed = True
    while changed:
        changed = False
        # Alternate passes up and down the board: each carries growth through all words in its direction.
        for i in range(num_words):
            changed |= grow_word(t, target, mask, i, grown_before, spec)
        grown_before = True
        for i in range(num_words - 2, -1, -1):
            changed |= grow_word(t, target, mask, i, True, spec)


@inlined_kernel
def covers(t, target, wanted, spec):
    """Whether t[target] has all cells of t[wanted]."""
    left = ZERO
    for i in range(len(spec.words)):
        left |= t[wanted + i] & ~t[target + i]
    return left == ZERO


@kernel
def flood_until(t, target, mask, wanted, spec):
    """The same, but ends, with true, as soon as all of t[wanted], a subset of t[mask], is reached."""
    num_words = len(spec.words)
    grown_before = False
    changed = True
    while changed:
        changed = False
        for step in range(2 * num_words - 1):
            i = step if step < num_words else 2 * num_words - 2 - step
            if grow_word(t, target, mask, i, grown_before or step >= num_words, spec):
                changed = True
                if covers(t, target, wanted, spec):
                    return True
        grown_before = True
    return covers(t, target, wanted, spec)


@kernel
def slot(number, spec):
    """Offset of a work slot."""
    return (4 + number) * len(spec.words) + 1


@kernel
def refresh_reach(t, spec):
    """Recompute the empty cells and, for both colours, those of regions that touch the colour."""
    num_words = len(spec.words)
    empty = slot(EMPTY, spec)
    for i in range(num_words):
        t[empty + i] = spec.board[i] & ~(t[i] | t[num_words + i])
    for colour in range(2):
        reach = (2 + colour) * num_words
        dilate(t, colour * num_words, reach, spec)
        for i in range(num_words):
            t[reach + i] &= t[empty + i]
        flood(t, reach, empty, spec)


@kernel
def find_dead(t, stones, spec):
    """Among the groups of t[stones] with a stone in CANDIDATES, collect the dead ones in DEAD; true if there are any.

    Reads EMPTY; uses up CANDIDATES; overwrites GROUP, REACH, OTHERS.
    """
    num_words = len(spec.words)
    empty, candidates, dead = slot(EMPTY, spec), slot(CANDIDATES, spec), slot(DEAD, spec)
    group, reach, others = slot(GROUP, spec), slot(REACH, spec), slot(OTHERS, spec)
    any_dead = False
    for i in range(num_words):
        t[dead + i] = ZERO
    at = 0
    while at < num_words:
        if t[candidates + at] == ZERO:
            at += 1
            continue
        for i in range(num_words):
            t[group + i] = ZERO
        t[group + at] = ONE << lowest_bit(t[candidates + at])
        flood(t, group, stones, spec)
        dilate(t, group, reach, spec)
        for i in range(num_words):
            t[reach + i] &= t[empty + i]
        flood(t, reach, empty, spec)
        dilate(t, reach, others, spec)
        linked = ZERO
        for i in range(num_words):
            t[others + i] &= t[stones + i] & ~t[group + i]
            linked |= t[others + i]
        if linked == ZERO:
            any_dead = True
            for i in range(num_words):
                t[dead + i] |= t[group + i]
                t[candidates + i] &= ~t[group + i]
        else:
            # Whatever this group is linked to is linked to this group: alive as well.
            flood(t, others, stones, spec)
            for i in range(num_words):
                t[candidates + i] &= ~(t[group + i] | t[others + i])
    return any_dead


@kernel
def remove_dead_of(t, colour, spec):
    """Take all dead groups of one colour off the board, however they came about; updates EMPTY."""
    num_words = len(spec.words)
    stones = colour * num_words
    empty, candidates, dead = slot(EMPTY, spec), slot(CANDIDATES, spec), slot(DEAD, spec)
    for i in range(num_words):
        t[empty + i] = spec.board[i] & ~(t[i] | t[num_words + i])
        t[candidates + i] = t[stones + i]
    if find_dead(t, stones, spec):
        for i in range(num_words):
            t[stones + i] &= ~t[dead + i]
            t[empty + i] |= t[dead + i]


@kernel
def ring_code(t, stones, cell, spec):
    """Six bits: which neighbours of a cell are in t[stones], in cyclic order."""
    code = 0
    for k in range(6):
        bit = spec.ring_bit[cell, k]
        code |= np.int64(t[stones + (bit >> 6)] >> np.uint64(bit & 63) & ONE) << k
    return code


@kernel
def endangered(t, cell, enemy, enemy_reach, empty_ring, verdict, spec):
    """Put in CANDIDATES a stone of each enemy group that may die by a stone just placed; true if there are any.

    A piece of the region that several enemy groups touch keeps all of them alive; one alone in its piece may have lost
    its last link, and so may one that the stone has cut off from the region. Pieces that no enemy touches leave the
    enemy's reach. Overwrites REGION, GROUP, REACH, OTHERS.
    """
    num_words = len(spec.words)
    empty, region, candidates = slot(EMPTY, spec), slot(REGION, spec), slot(CANDIDATES, spec)
    group, touching, others = slot(GROUP, spec), slot(REACH, spec), slot(OTHERS, spec)
    for i in range(num_words):
        t[candidates + i] = ZERO
        t[others + i] = ZERO
    cut_off = verdict & CUT_OFF
    found = cut_off != 0
    for k in range(6):
        bit = spec.ring_bit[cell, k]
        if empty_ring >> k & 1:
            t[others + (bit >> 6)] |= ONE << np.uint64(bit & 63)
        if cut_off >> k & 1:
            t[candidates + (bit >> 6)] |= ONE << np.uint64(bit & 63)
    at = 0
    while at < num_words:
        if t[others + at] == ZERO:
            at += 1
            continue
        for i in range(num_words):
            t[region + i] = ZERO
        t[region + at] = ONE << lowest_bit(t[others + at])
        last = flood_until(t, region, empty, others, spec)
        several = False
        for attempt in range(2):
            # Of the last piece as much is known as was needed to find that it is one: mostly enough.
            dilate(t, region, touching, spec)
            word = -1
            for i in range(num_words):
                t[touching + i] &= t[enemy + i]
                t[group + i] = ZERO
                if t[touching + i] != ZERO:
                    word = i
            if word >= 0:
                t[group + word] = ONE << lowest_bit(t[touching + word])
                flood(t, group, enemy, spec)
                several = not covers(t, group, touching, spec)
            if several or not last or attempt == 1:
                break
            flood(t, region, empty, spec)
        for i in range(num_words):
            t[others + i] &= ~t[region + i]
            if word < 0:
                t[enemy_reach + i] &= ~t[region + i]
        if word >= 0 and not several:
            t[candidates + word] |= ONE << lowest_bit(t[touching + word])
            found = True
    return found


@inlined_kernel
def place_in_play(t, cell, colour, spec):
    """Place a stone after the opening, remove the dead, keep both reaches right. The cell must be legal."""
    num_words = len(spec.words)
    own, enemy = colour * num_words, (1 - colour) * num_words
    own_reach, enemy_reach = (2 + colour) * num_words, (3 - colour) * num_words
    empty, candidates, dead = slot(EMPTY, spec), slot(CANDIDATES, spec), slot(DEAD, spec)
    bit = spec.cell_bit[cell]
    word = bit >> 6
    stone = ONE << np.uint64(bit & 63)

    for i in range(num_words):
        t[empty + i] = spec.board[i] & ~(t[i] | t[num_words + i])
    empty_ring = ring_code(t, empty, cell, spec)
    enemy_ring = ring_code(t, enemy, cell, spec)
    own_ring = ring_code(t, own, cell, spec)
    enemy_was_here = t[enemy_reach + word] & stone != ZERO

    t[own + word] |= stone
    t[empty + word] &= ~stone
    t[own_reach + word] &= ~stone
    t[enemy_reach + word] &= ~stone

    verdict = np.int64(spec.verdict[enemy_ring << 6 | empty_ring])
    removed = False
    if (
        enemy_was_here
        and verdict != 0
        and endangered(t, cell, enemy, enemy_reach, empty_ring, verdict, spec)
        and find_dead(t, enemy, spec)
    ):
        removed = True
        for i in range(num_words):
            t[enemy + i] &= ~t[dead + i]
            t[empty + i] |= t[dead + i]
    if spec.arcs[own_ring] > 1:
        for i in range(num_words):
            t[candidates + i] = ZERO
        t[candidates + word] = stone
        if find_dead(t, own, spec):
            removed = True
            for i in range(num_words):
                t[own + i] &= ~t[dead + i]
    if removed:
        refresh_reach(t, spec)


@inlined_kernel
def step_state(t, action, spec):
    """Play a legal action on the state at the front of a work buffer, in place. Checks nothing."""
    num_words = len(spec.words)
    at = 4 * num_words
    meta = t[at]
    if action == spec.num_cells:
        t[at] = meta | SWAPPED_BIT
        return
    turn = np.int64(meta & TURN_MASK)
    if action > spec.num_cells:
        meta = meta - ONE_KOMI + ONE
    else:
        colour = turn & 1
        if turn >= spec.opening_turns:
            place_in_play(t, action, colour, spec)
            meta += ONE
        else:
            bit = spec.cell_bit[action]
            t[colour * num_words + (bit >> 6)] |= ONE << np.uint64(bit & 63)
            if spec.opening == STRONG_PIE and meta & PLACED_BIT == ZERO:
                meta |= PLACED_BIT
            else:
                meta = (meta & ~PLACED_BIT) + ONE
                if spec.opening == STRONG_PIE or turn >= 3:
                    remove_dead_of(t, 1 - colour, spec)
                    remove_dead_of(t, colour, spec)
            refresh_reach(t, spec)
    mover = np.int64(meta & ONE) * num_words
    stones = ZERO
    for i in range(num_words):
        stones |= t[mover + i]
    if stones == ZERO and meta & PLACED_BIT == ZERO and np.int64(meta & TURN_MASK) >= spec.opening_turns:
        meta |= OVER_BIT
    t[at] = meta


@kernel
def legal_cells(t, target, spec):
    """t[target] = the cells the mover may place on. The target slot may be any but EMPTY, GROUP and REACH."""
    num_words = len(spec.words)
    meta = t[4 * num_words]
    if meta & OVER_BIT != ZERO:
        for i in range(num_words):
            t[target + i] = ZERO
        return
    turn = np.int64(meta & TURN_MASK)
    colour = turn & 1
    if turn >= spec.opening_turns:
        for i in range(num_words):
            t[target + i] = t[(2 + colour) * num_words + i]
        return
    # In the opening every empty cell is legal, but beside one's own first stone where that is forbidden.
    if meta & PLACED_BIT != ZERO or (spec.adjacent_forbidden == 1 and turn >= 2):
        dilate(t, colour * num_words, target, spec)
    else:
        for i in range(num_words):
            t[target + i] = ZERO
    for i in range(num_words):
        t[target + i] = spec.board[i] & ~(t[i] | t[num_words + i] | t[target + i])


@kernel
def may_swap(meta, spec):
    """Whether the mover may exchange sides."""
    fresh = meta & (TURN_MASK | PLACED_BIT | SWAPPED_BIT) == ONE
    return fresh and spec.opening != KOMI_PIE


@kernel
def may_spend_komi(meta, spec):
    """Whether the mover may spend a point of komi."""
    turn = np.int64(meta & TURN_MASK)
    left = meta >> KOMI_SHIFT & KOMI_MASK
    return left != ZERO and turn & 1 == 1 and turn >= spec.opening_turns and meta & OVER_BIT == ZERO


@kernel
def outcome_of(meta):
    """+1 if seat 0 has won, -1 if seat 1 has, 0 while the game runs."""
    if meta & OVER_BIT == ZERO:
        return 0
    return 1 if seat_of(meta) == 1 else -1


@kernel
def seat_of(meta):
    """The seat to move, 0 or 1."""
    return np.int64((meta & ONE) ^ (meta & SWAPPED_BIT) >> np.uint64(17))


@kernel
def load(t, state):
    """Copy a state row to the front of a work buffer."""
    for i in range(len(state)):
        t[i] = state[i]


@kernel
def store(t, state):
    """Copy the state at the front of a work buffer to a row."""
    for i in range(len(state)):
        state[i] = t[i]


@kernel
def step_batch(states, actions, work, spec):
    """Play one legal action in each running game, in place; finished games stay as they are."""
    over = 4 * len(spec.words)
    for b in range(len(states)):
        if states[b, over] & OVER_BIT == ZERO:
            load(work, states[b])
            step_state(work, actions[b], spec)
            store(work, states[b])


@kernel
def write_legal(t, mask, b, spec):
    """Write mask[b], bool [A], the legal actions of the state at the front of a work buffer."""
    others = slot(OTHERS, spec)
    legal_cells(t, others, spec)
    for cell in range(spec.num_cells):
        mask[b, cell] = False
    for i in range(len(spec.words)):
        word = t[others + i]
        while word != ZERO:
            mask[b, spec.bit_cell[64 * i + np.int64(lowest_bit(word))]] = True
            word &= word - ONE
    meta = t[4 * len(spec.words)]
    mask[b, spec.num_cells] = may_swap(meta, spec)
    mask[b, spec.num_cells + 1] = may_spend_komi(meta, spec)


@kernel
def legal_batch(states, mask, work, spec):
    """Write the legal action mask, bool [B, A], of each state."""
    for b in range(len(states)):
        load(work, states[b])
        write_legal(work, mask, b, spec)


@kernel
def first_illegal(states, actions, work, spec):
    """The first running game whose action is illegal, or -1."""
    num_words = len(spec.words)
    others = slot(OTHERS, spec)
    for b in range(len(states)):
        meta = states[b, 4 * num_words]
        action = actions[b]
        if meta & OVER_BIT != ZERO:
            continue
        if action < 0 or action > spec.num_cells + 1:
            return b
        if action == spec.num_cells:
            legal = may_swap(meta, spec)
        elif action > spec.num_cells:
            legal = may_spend_komi(meta, spec)
        else:
            load(work, states[b])
            legal_cells(work, others, spec)
            bit = spec.cell_bit[action]
            legal = work[others + (bit >> 6)] >> np.uint64(bit & 63) & ONE != ZERO
        if not legal:
            return b
    return -1


@kernel
def status_batch(states, to_play, terminated, outcome):
    """Write seat to move, end and outcome of each state (int8, bool, int8 [B])."""
    last = states.shape[1] - 1
    for b in range(len(states)):
        meta = states[b, last]
        to_play[b] = seat_of(meta)
        terminated[b] = meta & OVER_BIT != ZERO
        outcome[b] = outcome_of(meta)


@kernel
def random_action(t, rng, spec):
    """A uniformly random legal action of a running state at the front of a work buffer."""
    num_words = len(spec.words)
    others = slot(OTHERS, spec)
    meta = t[4 * num_words]
    legal_cells(t, others, spec)
    count = 0
    for i in range(num_words):
        count += np.int64(popcount(t[others + i]))
    swap = np.int64(may_swap(meta, spec))
    pick = random_below(rng, count + swap + np.int64(may_spend_komi(meta, spec)))
    if pick >= count:
        return spec.num_cells + (0 if swap and pick == count else 1)
    for i in range(num_words):
        word = t[others + i]
        here = np.int64(popcount(word))
        if pick >= here:
            pick -= here
            continue
        for _ in range(pick):
            word &= word - ONE
        return spec.bit_cell[64 * i + np.int64(lowest_bit(word))]
    return -1


@kernel
def playout(t, rng, spec):
    """Play uniformly random legal actions to the end of the game; returns the plies played."""
    over = 4 * len(spec.words)
    plies = 0
    while t[over] & OVER_BIT == ZERO:
        step_state(t, random_action(t, rng, spec), spec)
        plies += 1
    return plies


@kernel
def random_plies(states, plies, rng, work, spec):
    """Play plies[b] random legal actions in each game, fewer where it ends before; in place."""
    over = 4 * len(spec.words)
    for b in range(len(states)):
        load(work, states[b])
        for _ in range(plies[b]):
            if work[over] & OVER_BIT != ZERO:
                break
            step_state(work, random_action(work, rng, spec), spec)
        store(work, states[b])


@kernel
def random_depth(states, keys, plies, stream, work, spec):
    """Play random legal actions in each running game, up to a random moment of a random game; in place.

    Args:
        keys: uint64 [B], the random stream of each game.
        plies: int64 [B], set to the number of plies played: any of 0 to one less than the random game has, equally
            likely, so that the game is still running.
        stream: uint64 [1], used up.
    """
    over = 4 * len(spec.words)
    for b in range(len(states)):
        if states[b, over] & OVER_BIT != ZERO:
            continue
        stream[0] = keys[b]
        load(work, states[b])
        plies[b] = random_below(stream, playout(work, stream, spec))
        stream[0] = keys[b]
        load(work, states[b])
        for _ in range(plies[b]):
            step_state(work, random_action(work, stream, spec), spec)
        store(work, states[b])


@kernel
def count_turns(state, turns, stack, work, spec):
    """Count sequences of `turns` >= 1 turns without swap or komi, two first-turn stones as an unordered pair.

    Args:
        stack: uint64 [2 turns + 1, 5 W + 1]: states, and behind each the placements still to try.
    """
    num_words = len(spec.words)
    size = 4 * num_words + 1
    others = slot(OTHERS, spec)
    end = np.int64(state[size - 1] & TURN_MASK) + turns
    for i in range(size):
        stack[0, i] = state[i]
    load(work, state)
    legal_cells(work, others, spec)
    for i in range(num_words):
        stack[0, size + i] = work[others + i]
    depth, total = 0, 0
    while depth >= 0:
        meta = stack[depth, size - 1]
        last_stone = spec.opening != STRONG_PIE or meta & PLACED_BIT != ZERO or np.int64(meta & TURN_MASK) >= 2
        if last_stone and np.int64(meta & TURN_MASK) + 1 == end:
            for i in range(num_words):
                total += np.int64(popcount(stack[depth, size + i]))
            depth -= 1
            continue
        at = 0
        while at < num_words and stack[depth, size + at] == ZERO:
            at += 1
        if at == num_words:
            depth -= 1
            continue
        bit = np.int64(lowest_bit(stack[depth, size + at]))
        stack[depth, size + at] &= stack[depth, size + at] - ONE
        for i in range(size):
            work[i] = stack[depth, i]
        step_state(work, spec.bit_cell[64 * at + bit], spec)
        depth += 1
        for i in range(size):
            stack[depth, i] = work[i]
        legal_cells(work, others, spec)
        for i in range(num_words):
            allowed = work[others + i]
            if not last_stone:  # second stones only behind the first: each pair once
                if i < at:
                    allowed = ZERO
                elif i == at:
                    allowed &= ~(((ONE << np.uint64(bit)) << ONE) - ONE)
            stack[depth, size + i] = allowed
    return total


def perft(position: Position, turns: int) -> int:
    """Count the sequences of `turns` turns from a position; see `count_turns`."""
    if turns == 0:
        return 1
    spec = spec_of(position.rules)
    words = len(spec.words)
    stack = np.zeros((2 * turns + 1, 5 * words + 1), np.uint64)
    work = np.zeros(work_size(words), np.uint64)
    return int(count_turns(encode_position(position), turns, stack, work, spec))
