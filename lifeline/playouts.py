"""Random games at a speed that hardly depends on the size of the board: the layout for long playouts.

Where kernels.py keeps a position as a few words and floods them, this layout keeps a record for each place and changes
only what a stone changes: codes of the rings around its neighbours, groups as circular lists that merge and vanish but
never split, and lists of the places either colour may choose from. Regions are not kept at all. What is asked of them
(does this one fall apart, do two enemy groups touch it, does it touch a stone of the mover) a search answers, which in
random games mostly ends at once.

It serves ordinary play only: openings are played by kernels.py and then loaded. See there for what is provably enough.

All memory of a position is one array, the *field*: a header, lists, and a record of 16 numbers for each place of the
board in a padded square. A place is known by the index of its record. One array, because a kernel that takes many
spends its time on passing them; unsigned, so that no index needs a look at its sign.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lifeline.compiled import inlined_kernel, kernel, lowest_bit
from lifeline.kernels import (
    CUT_OFF,
    KOMI_MASK,
    KOMI_SHIFT,
    ONE,
    ONE_KOMI,
    OVER_BIT,
    TURN_MASK,
    ZERO,
    playout,
    random_action,
    step_state,
)
from lifeline.rules import Rules
from lifeline.streams import random_below

# The header. STONES and CHOICES stand there for black and for white.
STONES = 0  # on the board
CHOICES = 2  # length of the list of choices
MARK = 4  # the newest mark
END = 5  # where the records end
NUM_DEAD = 6  # groups found dead
DEAD = 8  # these groups, seven at most
LONELY = 16  # groups that are alone in a piece of a region, three at most

# The lists, each of the cells of the largest board.
_LENGTH = 400
CHOICE_LIST = 32  # for each colour the empty places whose region touches it: where it may place, in any order
QUEUE = CHOICE_LIST + 2 * _LENGTH  # four, of searches
PLACES = QUEUE + 4 * _LENGTH

# A record.
RING = 0  # bit k: neighbour k is black, bit 6 + k: white; both: off the board
GROUP = 1  # under a stone: the number of its group, which is the place of one of its stones
NEXT = 2  # under a stone: the next stone of the group, in a circle
SIZE = 3  # at a group's number: its number of stones
INDEX = 4  # where the place stands among the choices of black, and of white; NOWHERE if it does not
LAST_MARK = 6  # which search last came by
NEIGHBOUR = 8  # the six places around, in cyclic order
_RECORD = 16

NOWHERE = 0xFFFF
# Marks begin anew before they overflow.
_MAX_MARK = 0xFFF0
_OFF_BOARD = 0xFFF


class Field(NamedTuple):
    """Memory for one position at a time, not to be shared between threads.

    Attributes:
        memory: uint16, see the module's text.
        blank: uint16, the same for an empty board.
        place: int64 [N], the place of each cell.
    """

    memory: npt.NDArray[np.uint16]
    blank: npt.NDArray[np.uint16]
    place: npt.NDArray[np.int64]


@lru_cache(maxsize=16)
def _blank(rules: Rules) -> Field:
    n, board = rules.base, rules.board
    width = 2 * n + 1
    place = np.array([PLACES + _RECORD * ((z + n) * width + (q + n)) for q, z in board.coords], np.int64)
    blank = np.zeros(PLACES + _RECORD * width * width, np.uint16)
    blank[END] = len(blank)
    blank[PLACES + RING :: _RECORD] = _OFF_BOARD
    for cell, at in enumerate(place):
        blank[at + RING] = sum(65 << k for k in range(6) if board.ring[cell, k] < 0)
        blank[at + INDEX : at + INDEX + 2] = NOWHERE
        for k, step in enumerate((1, width, width - 1, -1, -width, 1 - width)):
            blank[at + NEIGHBOUR + k] = at + _RECORD * step
    return Field(blank.copy(), blank, place)


def new_field(rules: Rules) -> Field:
    """A field for the boards of these rules."""
    field = _blank(rules)
    return field._replace(memory=field.blank.copy())


@kernel
def load_field(field, t, spec):
    """Take over the stones of a state in kernels.py's layout, past its opening."""
    num_words = len(spec.words)
    f = field.memory
    for i in range(len(f)):
        f[i] = field.blank[i]
    for cell in range(spec.num_cells):
        at = field.place[cell]
        word = spec.cell_bit[cell] >> 6
        bit = ONE << np.uint64(spec.cell_bit[cell] & 63)
        for colour in range(2):
            if t[colour * num_words + word] & bit != ZERO:
                put_stone(f, at, colour)
            elif t[(2 + colour) * num_words + word] & bit != ZERO:
                add_choice(f, at, colour)


@kernel
def add_choice(f, at, colour):
    """Put a place behind the choices of a colour."""
    last = f[CHOICES + colour]
    f[CHOICE_LIST + _LENGTH * colour + last] = at
    f[at + INDEX + colour] = last
    f[CHOICES + colour] = last + 1


@kernel
def drop_choice(f, at, colour):
    """Take a place out of the choices of a colour, if it is there."""
    index = f[at + INDEX + colour]
    if index != NOWHERE:
        start = CHOICE_LIST + _LENGTH * colour
        last = f[CHOICES + colour] - 1
        f[CHOICES + colour] = last
        other = f[start + last]
        f[start + index] = other
        f[other + INDEX + colour] = index
        f[at + INDEX + colour] = NOWHERE


@inlined_kernel
def put_stone(f, at, colour):
    """Set a stone down and join it to its neighbours' groups; returns how many there were."""
    code = np.int64(f[at + RING])
    for k in range(6):
        # The neighbour sees this place in the opposite direction.
        f[f[at + NEIGHBOUR + k] + RING] |= 1 << 6 * colour + (k + 3 if k < 3 else k - 3)
    f[STONES + colour] += 1
    group = np.int64(at)
    f[at + GROUP] = at
    f[at + NEXT] = at
    f[at + SIZE] = 1
    joined = 0
    own = stones_in(code, colour)
    starts = first_of_runs(own)  # a run is of one group
    while starts != 0:
        k = np.int64(lowest_bit(np.uint64(starts)))
        starts &= starts - 1
        other = np.int64(f[f[at + NEIGHBOUR + k] + GROUP])
        if other == group:
            continue
        joined += 1
        if f[other + SIZE] > f[group + SIZE]:
            group, other = other, group
        stone = other
        while True:
            f[stone + GROUP] = group
            stone = np.int64(f[stone + NEXT])
            if stone == other:
                break
        f[group + SIZE] += f[other + SIZE]
        follower = f[group + NEXT]
        f[group + NEXT] = f[other + NEXT]
        f[other + NEXT] = follower
    return joined


@kernel
def lift_group(f, group, colour):
    """Take a group off the board; `settle` comes after."""
    stone = np.int64(group)
    while True:
        for k in range(6):
            f[f[stone + NEIGHBOUR + k] + RING] &= ~(1 << 6 * colour + (k + 3 if k < 3 else k - 3))
        stone = np.int64(f[stone + NEXT])
        if stone == group:
            break
    f[STONES + colour] -= f[group + SIZE]


@kernel
def stones_in(code, colour):
    """Six bits: where a ring code has a stone of the colour."""
    shift = 6 * colour
    return code >> shift & ~(code >> 6 - shift) & 63


@kernel
def empty_in(code):
    """Six bits: where a ring code has an empty cell."""
    return 63 & ~(code | code >> 6)


@kernel
def first_of_runs(ring):
    """The first of each cyclic run of set bits, of six."""
    return 1 if ring == 63 else ring & ~(ring << 1 | ring >> 5)


@kernel
def new_marks(f, count):
    """The first of so many marks that no place bears."""
    if f[MARK] > _MAX_MARK - count:
        for at in range(PLACES, np.int64(f[END]), _RECORD):
            f[at + LAST_MARK] = 0
        f[MARK] = 0
    first = np.int64(f[MARK]) + 1
    f[MARK] += count
    return first


@inlined_kernel
def settle(f, group, mark):
    """Set right who may choose the places of the regions in which a group stood that has been taken off."""
    stone = np.int64(group)
    while True:
        if f[stone + LAST_MARK] != mark:
            f[stone + LAST_MARK] = mark
            f[QUEUE] = stone
            head, tail = 0, 1
            blacks, whites = 0, 0
            while head < tail:
                here = np.int64(f[QUEUE + head])
                head += 1
                code = np.int64(f[here + RING])
                blacks |= stones_in(code, 0)
                whites |= stones_in(code, 1)
                tail = spread(f, here, mark, mark, QUEUE, tail)
            for i in range(tail):
                here = np.int64(f[QUEUE + i])
                for colour in range(2):
                    if (blacks if colour == 0 else whites) == 0:
                        drop_choice(f, here, colour)
                    elif f[here + INDEX + colour] == NOWHERE:
                        add_choice(f, here, colour)
        stone = np.int64(f[stone + NEXT])
        if stone == group:
            break


@inlined_kernel
def spread(f, here, since, mark, queue, tail):
    """Mark the empty neighbours of a place that bear no mark from `since` on, and queue them; returns the new tail."""
    empty = empty_in(np.int64(f[here + RING]))
    while empty != 0:
        other = np.int64(f[here + NEIGHBOUR + np.int64(lowest_bit(np.uint64(empty)))])
        empty &= empty - 1
        if f[other + LAST_MARK] < since:
            f[other + LAST_MARK] = mark
            f[queue + tail] = other
            tail += 1
    return tail


@kernel
def other_group(f, at, colour, group):
    """A group of the colour beside a place, other than the one given; 0 if there is none."""
    starts = first_of_runs(stones_in(np.int64(f[at + RING]), colour))
    while starts != 0:
        k = np.int64(lowest_bit(np.uint64(starts)))
        starts &= starts - 1
        found = np.int64(f[f[at + NEIGHBOUR + k] + GROUP])
        if found != group:
            return found
    return 0


@kernel
def is_alive(f, first, colour):
    """Whether some empty region touches both the group of a stone and another group of its colour."""
    mark = new_marks(f, 1)
    queue = QUEUE + 3 * _LENGTH
    group = np.int64(f[first + GROUP])
    stone = np.int64(first)
    while True:
        liberties = empty_in(np.int64(f[stone + RING]))
        while liberties != 0:
            start = np.int64(f[stone + NEIGHBOUR + np.int64(lowest_bit(np.uint64(liberties)))])
            liberties &= liberties - 1
            if f[start + LAST_MARK] == mark:
                continue
            f[start + LAST_MARK] = mark
            f[queue] = start
            head, tail = 0, 1
            while head < tail:
                here = np.int64(f[queue + head])
                head += 1
                if other_group(f, here, colour, group) != 0:
                    return True
                tail = spread(f, here, mark, mark, queue, tail)
        stone = np.int64(f[stone + NEXT])
        if stone == first:
            return False


@kernel
def condemn(f, stone, colour):
    """Put the group of a stone on the list of the dead if it is dead and not there yet."""
    group = f[stone + GROUP]
    count = np.int64(f[NUM_DEAD])
    for i in range(count):
        if f[DEAD + i] == group:
            return
    if not is_alive(f, stone, colour):
        f[DEAD + count] = group
        f[NUM_DEAD] = count + 1


@inlined_kernel
def judge_enemies(f, at, verdict, enemy):
    """Collect the enemy groups that die by a stone just placed, in DEAD.

    Args:
        at: where the stone stands.
        verdict: of the ring around it, see `Spec`; not 0.
        enemy: the other colour.
    """
    # One search from each run of empty neighbours, a cell at a time in turn, until all have met or one is exhausted.
    code = np.int64(f[at + RING])
    starts = first_of_runs(empty_in(code))
    base = new_marks(f, 3)
    arcs = 0
    while starts != 0:
        start = np.int64(f[at + NEIGHBOUR + np.int64(lowest_bit(np.uint64(starts)))])
        starts &= starts - 1
        f[QUEUE + _LENGTH * arcs] = start
        f[start + LAST_MARK] = base + arcs
        arcs += 1
    head0, head1, head2 = 0, 0, 0
    tail0, tail1, tail2 = np.int64(arcs > 0), np.int64(arcs > 1), np.int64(arcs > 2)
    # Searches that have met go by the number of the first of them.
    name1, name2 = 1, 2
    unfinished = arcs
    turn = 0
    while unfinished > 1:
        head = head0 if turn == 0 else (head1 if turn == 1 else head2)
        tail = tail0 if turn == 0 else (tail1 if turn == 1 else tail2)
        if head < tail:
            queue = QUEUE + _LENGTH * turn
            here = np.int64(f[queue + head])
            head += 1
            empty = empty_in(np.int64(f[here + RING]))
            while empty != 0:
                other = np.int64(f[here + NEIGHBOUR + np.int64(lowest_bit(np.uint64(empty)))])
                empty &= empty - 1
                seen = np.int64(f[other + LAST_MARK]) - base
                if seen < 0:
                    f[other + LAST_MARK] = base + turn
                    f[queue + tail] = other
                    tail += 1
                elif seen != turn:
                    a = 0 if turn == 0 else (name1 if turn == 1 else name2)
                    b = 0 if seen == 0 else (name1 if seen == 1 else name2)
                    low, high = min(a, b), max(a, b)
                    if name1 == high:
                        name1 = low
                    if name2 == high:
                        name2 = low
            if turn == 0:
                head0, tail0 = head, tail
            elif turn == 1:
                head1, tail1 = head, tail
            else:
                head2, tail2 = head, tail
        # How many pieces there may still be whose searches are not exhausted.
        left0, left1, left2 = head0 < tail0, head1 < tail1, head2 < tail2
        if name1 == 0:
            left0, left1 = left0 or left1, False
        if name2 == 0:
            left0, left2 = left0 or left2, False
        elif name2 == 1:
            left1, left2 = left1 or left2, False
        unfinished = np.int64(left0) + np.int64(left1) + np.int64(left2)
        turn = turn + 1 if turn + 1 < arcs else 0
    pieces = np.int64(arcs > 0) + np.int64(arcs > 1 and name1 == 1) + np.int64(arcs > 2 and name2 == 2)
    if pieces < 2 and verdict & CUT_OFF == 0:
        return
    lonely = 0
    living, also_living = 0, 0  # groups met in a piece with several
    for name in range(arcs):
        if (name == 1 and name1 != 1) or (name == 2 and name2 != 2):
            continue
        # An enemy group alone in this piece may have lost its last link; several live by the piece.
        first = np.int64(0)
        several = False
        for turn in range(name, arcs):
            if several or not (turn == name or (turn == 1 and name1 == name) or (turn == 2 and name2 == name)):
                continue
            queue = QUEUE + _LENGTH * turn
            head, expanded = 0, head0 if turn == 0 else (head1 if turn == 1 else head2)
            tail = tail0 if turn == 0 else (tail1 if turn == 1 else tail2)
            while head < tail:
                here = np.int64(f[queue + head])
                found = other_group(f, here, enemy, first)
                if found != 0:
                    also = first if first != 0 else other_group(f, here, enemy, found)
                    if also != 0:
                        several = True
                        living, also_living = found, also
                        break
                    first = found
                if head >= expanded:
                    tail = spread(f, here, base, base + turn, queue, tail)
                head += 1
            if turn == 0:
                tail0 = tail
            elif turn == 1:
                tail1 = tail
            else:
                tail2 = tail
        if several:
            continue
        if first == 0:  # this piece is closed to the enemy from now on
            for turn in range(name, arcs):
                if turn == name or (turn == 1 and name1 == name) or (turn == 2 and name2 == name):
                    # All its places are in the queues: nothing ended the searches.
                    for i in range(tail0 if turn == 0 else (tail1 if turn == 1 else tail2)):
                        drop_choice(f, np.int64(f[QUEUE + _LENGTH * turn + i]), enemy)
        else:
            f[LONELY + lonely] = first
            lonely += 1
    # Only now: the search for life leaves marks of its own.
    for i in range(lonely):
        group = np.int64(f[LONELY + i])
        if group != living and group != also_living:
            condemn(f, group, enemy)
    cut_off = verdict & CUT_OFF
    while cut_off != 0:
        k = np.int64(lowest_bit(np.uint64(cut_off)))
        cut_off &= cut_off - 1
        condemn(f, np.int64(f[at + NEIGHBOUR + k]), enemy)


@inlined_kernel
def place_on_field(f, at, colour, verdicts):
    """Place a stone and remove the dead. The place must be legal; `verdicts` is the table of the `Spec`."""
    code = np.int64(f[at + RING])
    enemy_was_here = f[at + INDEX + 1 - colour] != NOWHERE
    drop_choice(f, at, 0)
    drop_choice(f, at, 1)
    joined = put_stone(f, at, colour)
    verdict = np.int64(verdicts[stones_in(code, 1 - colour) << 6 | empty_in(code)])
    f[NUM_DEAD] = 0
    if verdict != 0 and enemy_was_here:
        judge_enemies(f, at, verdict, 1 - colour)
        for i in range(f[NUM_DEAD]):
            lift_group(f, np.int64(f[DEAD + i]), 1 - colour)
    if joined > 1 and not is_alive(f, at, colour):
        lift_group(f, np.int64(f[at + GROUP]), colour)
        f[DEAD + f[NUM_DEAD]] = f[at + GROUP]
        f[NUM_DEAD] += 1
    if f[NUM_DEAD] != 0:
        mark = new_marks(f, 1)
        for i in range(f[NUM_DEAD]):
            settle(f, np.int64(f[DEAD + i]), mark)


@kernel
def play_out(t, rng, field, spec):
    """Play uniformly random legal actions to the end of the game; returns the plies played.

    Of the state at the front of the work buffer only the counters are those of the end; the stones are not.
    """
    over = 4 * len(spec.words)
    if len(spec.words) == 1:  # small boards are faster as bits
        return playout(t, rng, spec)
    plies = 0
    while t[over] & OVER_BIT == ZERO and np.int64(t[over] & TURN_MASK) < spec.opening_turns:
        step_state(t, random_action(t, rng, spec), spec)
        plies += 1
    if t[over] & OVER_BIT != ZERO:
        return plies
    load_field(field, t, spec)
    f = field.memory
    meta = t[over]
    while True:
        colour = np.int64(meta & ONE)
        komi = np.int64(colour == 1 and meta >> KOMI_SHIFT & KOMI_MASK != ZERO)
        choices = np.int64(f[CHOICES + colour])
        pick = random_below(rng, choices + komi)
        if pick == choices:
            meta -= ONE_KOMI
        else:
            place_on_field(f, np.int64(f[CHOICE_LIST + _LENGTH * colour + pick]), colour, spec.verdict)
        meta += ONE
        plies += 1
        if f[STONES + 1 - colour] == 0:
            t[over] = meta | OVER_BIT
            return plies
