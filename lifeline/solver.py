"""Exact values of small boards and endgames: depth-first search for a win, with a transposition table.

A position is won for the player to move or lost, so the search only ever asks whether some move wins. Positions that a
symmetry of the board takes into each other share one entry of the table, unless they are not worth looking for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lifeline import kernels
from lifeline.compiled import inlined_kernel, kernel, lowest_bit, popcount
from lifeline.errors import LifelineError
from lifeline.kernels import (
    KOMI_MASK,
    KOMI_SHIFT,
    ONE,
    OTHERS,
    OVER_BIT,
    PLACED_BIT,
    TURN_MASK,
    ZERO,
    legal_cells,
    load,
    longest_game,
    may_spend_komi,
    may_swap,
    seat_of,
    slot,
    step_state,
    store,
)
from lifeline.rules import Position, Rules

UInt64Array = npt.NDArray[np.uint64]
Int64Array = npt.NDArray[np.int64]

# Entries looked at for a place in the table.
_PROBES = 4
# Cells times nodes searched without a look at the clock, some hundredths of a second: most endgames need no more.
_UNWATCHED = 40_000
_ALL_NODES = 2**62
# Seconds between two looks at the clock and at what asks to stop.
_LOOK = 0.05

Stop = Callable[[], bool]
"""Asked again and again during a search, at least ten times a second: True ends it. An event's `is_set` will do."""

WIN, LOSS, UNKNOWN = 1, -1, 0
NO_MOVE = 2
"""Stands where the value of a move would, for an action that is not legal."""
# Stands where the value of a node would whose children must be searched.
_EXPANDED = 3

# Of a frame: who moves there, the value so far, how many children there are to try, and which is next.
_SEAT, _VALUE, _COUNT, _NEXT = range(4)


class Memory(NamedTuple):
    """What a search needs, not to be shared between threads; D is its greatest depth, E the size of the table.

    Attributes:
        table: uint64 [E, 2 W + 1], keys.
        values: int8 [E], of the positions there.
        maps: uint64 [12, 8 W, 256, W], see `_byte_maps`; without symmetries [0, ...].
        frames: int64 [D, 4], of the nodes from the root to the one at hand.
        order: int64 [D, A], their children not known at once, best first once sorted; the index in the lowest ten bits.
        children: uint64 [D, A, 4 W + 1].
        actions: int64 [A], the moves to the children of the root.
        cells: uint64 [W], still to be played when children are made.
        key: uint64 [2, 2 W + 1], the canonical key is the first.
        work: uint64, the kernels' work buffer.
    """

    table: UInt64Array
    values: npt.NDArray[np.int8]
    maps: UInt64Array
    frames: Int64Array
    order: Int64Array
    children: UInt64Array
    actions: Int64Array
    cells: UInt64Array
    key: UInt64Array
    work: UInt64Array


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Attributes:
        value: +1 the player to move wins, -1 loses, None when a limit came first.
        known_winning: the actions known to win, ascending.
        undecided: the actions that a limit left open, ascending.
        nodes: positions searched.
        seconds: time taken.
    """

    value: int | None
    known_winning: tuple[int, ...]
    undecided: tuple[int, ...]
    nodes: int
    seconds: float

    @property
    def winning(self) -> tuple[int, ...] | None:
        """The winning actions, ascending; None unless all moves were decided."""
        return None if self.undecided else self.known_winning


@dataclass(frozen=True)
class FirstTurns:
    """What the solver found about the first turns of Black.

    Attributes:
        winners: by move text the colour that wins, 'b' or 'w', None where a limit came first. Turns that a stop came
            before are missing.
        nodes: positions searched.
        seconds: time taken.
    """

    winners: Mapping[str, str | None]
    nodes: int
    seconds: float

    def count(self, winner: str | None) -> int:
        """How many turns of those looked at are won by a colour, or undecided."""
        return sum(found == winner for found in self.winners.values())


@lru_cache(maxsize=16)
def _byte_maps(rules: Rules) -> UInt64Array:
    """uint64 [12, 8 W, 256, W]: where each symmetry takes the cells of each byte of a bitboard."""
    spec = kernels.spec_of(rules)
    words = len(spec.words)
    maps = np.zeros((12, 8 * words, 256, words), np.uint64)
    for s, symmetry in enumerate(rules.board.symmetries):
        for cell, bit in enumerate(spec.cell_bit):
            to = int(spec.cell_bit[symmetry[cell]])
            with_bit = np.flatnonzero(np.arange(256) >> (int(bit) & 7) & 1)
            maps[s, bit >> 3, with_bit, to >> 6] |= np.uint64(1 << (to & 63))
    return maps


class Solver:
    """Solves positions of one set of rules; the table is kept from one to the next.

    Args:
        rules: what is played.
        table_bits: the table has 2**table_bits entries, of 8 (2 W + 2) bytes each.
        symmetric: whether positions that a symmetry of the board takes into each other are taken for one. Saves most of
            the work where the board is nearly empty; late in a game it costs more than it saves.

    Attributes:
        memory: for kernels that search on their own.
    """

    def __init__(self, rules: Rules, table_bits: int = 21, symmetric: bool = True) -> None:
        self.rules = rules
        self._spec = kernels.spec_of(rules)
        self._words = len(self._spec.words)
        depths, most = longest_game(rules), rules.num_actions  # deeper lines are cut as unknown
        self.memory = Memory(
            table=np.zeros((1 << table_bits, 2 * self._words + 1), np.uint64),
            values=np.zeros(1 << table_bits, np.int8),
            maps=_byte_maps(rules) if symmetric else _byte_maps(rules)[:0],
            frames=np.zeros((depths, 4), np.int64),
            order=np.zeros((depths, most), np.int64),
            children=np.zeros((depths, most, kernels.state_size(self._words)), np.uint64),
            actions=np.zeros(most, np.int64),
            cells=np.zeros(self._words, np.uint64),
            key=np.zeros((2, 2 * self._words + 1), np.uint64),
            work=np.zeros(kernels.work_size(self._words), np.uint64),
        )
        self._no_moves = np.zeros(0, np.int8)

    def forget(self) -> None:
        """Clear the table: what is asked next does not hang on what was asked before."""
        self.memory.table.fill(0)
        self.memory.values.fill(UNKNOWN)

    def value(
        self,
        state: UInt64Array,
        max_nodes: int | None = None,
        max_seconds: float | None = None,
        stop: Stop | None = None,
    ) -> int:
        """Value of a packed state for the player to move: +1, -1, or 0 when a limit came first or `stop` said so."""
        return self._value(state, _Limits(max_nodes, max_seconds, stop))

    def values(self, states: UInt64Array, max_nodes: int) -> npt.NDArray[np.int8]:
        """Int8 [R], the same of many packed states, each by at most so many nodes and nothing known before.

        Meant for few nodes and a small table: it is cleared for each. Not even Ctrl-C ends it before it is done.
        """
        found = np.zeros(len(states), np.int8)
        search_each(states, found, self.memory, np.array([0, max_nodes], np.int64), self._no_moves, self._spec)
        return found

    def _value(self, state: UInt64Array, limits: _Limits) -> int:
        # What a search finds before it is cut off stays in the table: the next one goes on from there.
        counter = np.array([0, limits.nodes_left(_UNWATCHED // self.rules.num_cells)], np.int64)
        value = self._search(state, counter)
        limits.nodes += int(counter[0])
        if value == UNKNOWN and not limits.exhausted():
            counter[:] = 0, limits.nodes_left()
            value = self._watched_search(state, counter, limits)
            limits.nodes += int(counter[0])
        return value

    def _watched_search(self, state: UInt64Array, counter: Int64Array, limits: _Limits) -> int:
        """Search in a thread of its own, which a limit or an exception in this one, such as Ctrl-C, brings to an end.

        While the kernel runs, the thread it runs in can neither look at a clock nor receive a signal.
        """
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(self._search(state, counter)), daemon=True)
        thread.start()
        try:
            while thread.is_alive() and not limits.exhausted():
                thread.join(_LOOK)
        finally:
            counter[1] = 0  # the kernel reads it at every node
            thread.join()
        return found[0]

    def _search(self, state: UInt64Array, counter: Int64Array) -> int:
        return int(search(state, self.memory, counter, self._no_moves, self._spec))

    def solve(
        self,
        position: Position,
        max_nodes: int | None = None,
        max_seconds: float | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """Value and all winning moves of a position.

        Ctrl-C ends it as any Python code, by KeyboardInterrupt; what has been found is then kept in the table only.

        Args:
            max_nodes, max_seconds: limits; what they leave undecided is None in the result.
            stop: ends the search when it returns True, as a limit does.

        Raises:
            LifelineError: the position is of other rules; the komi may differ, which is part of the position.
        """
        if replace(position.rules, komi=0) != replace(self.rules, komi=0):
            raise LifelineError(f"a position of {position.rules} for a solver of {self.rules}")
        return self.solve_state(kernels.encode_position(position), max_nodes, max_seconds, stop)

    def solve_state(
        self,
        state: UInt64Array,
        max_nodes: int | None = None,
        max_seconds: float | None = None,
        stop: Stop | None = None,
    ) -> Solution:
        """The same for a packed state, which must be of these rules."""
        limits = _Limits(max_nodes, max_seconds, stop)
        winning, undecided = [], []
        mask = np.zeros((1, self.rules.num_actions), np.bool_)
        kernels.legal_batch(state[None], mask, self.memory.work, self._spec)
        actions = np.flatnonzero(mask[0])
        after = np.tile(state, (len(actions), 1))
        kernels.step_batch(after, actions, self.memory.work, self._spec)
        over = 4 * self._words
        for i, action in enumerate(actions.tolist()):
            found = UNKNOWN
            if not limits.stopped():  # beyond other limits, what is in the table already costs next to nothing
                found = self._value(after[i], limits)
                if kernels.seat_of(after[i, over]) != kernels.seat_of(state[over]):
                    found = -found
            if found == UNKNOWN:
                undecided.append(action)
            elif found == WIN:
                winning.append(action)
        value = WIN if winning else UNKNOWN if undecided else LOSS
        return Solution(value or None, tuple(winning), tuple(undecided), limits.nodes, limits.seconds())

    def solve_first_turns(
        self,
        max_nodes: int | None = None,
        max_seconds: float | None = None,
        stop: Stop | None = None,
        progress: Callable[[FirstTurns], None] | None = None,
    ) -> FirstTurns:
        """Who wins after each first turn of Black, where White may not swap.

        Args:
            max_nodes, max_seconds, stop: limits of the whole, as in `solve`.
            progress: called after each turn with what is known by then.
        """
        limits, winners = _Limits(max_nodes, max_seconds, stop), dict[str, str | None]()
        result = FirstTurns(winners, 0, 0.0)
        for text, position in first_turns(self.rules):
            if limits.stopped():
                break
            found = self._value(kernels.encode_position(position), limits)
            winners[text] = {WIN: "w", LOSS: "b", UNKNOWN: None}[found]
            result = FirstTurns(winners, limits.nodes, limits.seconds())
            if progress is not None:
                progress(result)
        return result


def first_turns(rules: Rules) -> Iterator[tuple[str, Position]]:
    """Each first turn of Black, as a move text, with the position after it in which White may not swap.

    A turn of two stones is given once, its lower cell first.
    """
    start = Position.start(rules)
    for first in start.legal_actions():
        after = start.play(first)
        seconds = [second for second in after.legal_actions() if second > first] if after.placed else [None]
        for second in seconds:
            done = after if second is None else after.play(second)
            text = ",".join(rules.board.labels[cell] for cell in (first, second) if cell is not None)
            # Sides can be swapped once: where they have been, they cannot be again.
            yield text, replace(done, swapped=done.may_swap)


class _Limits:
    """Nodes and seconds that may still be spent, and whether someone has asked to stop."""

    def __init__(self, max_nodes: int | None, max_seconds: float | None, stop: Stop | None) -> None:
        self.max_nodes, self.max_seconds, self.stop = max_nodes, max_seconds, stop
        self.nodes = 0
        self._stopped = False
        self._began = time.perf_counter()

    def nodes_left(self, most: int = _ALL_NODES) -> int:
        """Nodes that may still be searched, at least one and at most `most`."""
        if self.exhausted():
            return 1
        return most if self.max_nodes is None else min(most, self.max_nodes - self.nodes)

    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self._began

    def exhausted(self) -> bool:
        """Whether a limit has been reached."""
        out_of_nodes = self.max_nodes is not None and self.nodes >= self.max_nodes
        return self.stopped() or out_of_nodes or (self.max_seconds is not None and self.seconds() >= self.max_seconds)

    def stopped(self) -> bool:
        """Whether someone has asked to stop; once said, it stands."""
        self._stopped = self._stopped or (self.stop is not None and self.stop())
        return self._stopped


@inlined_kernel
def canonical_key(state, maps, key, spec):
    """key[0] = black, white and meta of the state, seen through the symmetry that makes the stones least, if any."""
    num_words = len(spec.words)
    for i in range(2 * num_words):
        key[0, i] = state[i]
    if len(maps) > 0:
        least_stones(state, maps, key, spec.words)
    meta = state[4 * num_words]
    turn = meta & TURN_MASK
    # All that bears on the value: who places, the phase of the opening, whether a swap is open, the komi. Never 0.
    phase = turn if np.int64(turn) < spec.opening_turns else np.uint64(8) | (turn & ONE)
    swap = np.uint64(1 << 6) if may_swap(meta, spec) else ZERO
    placed = np.uint64(1 << 5) if meta & PLACED_BIT != ZERO else ZERO
    key[0, 2 * num_words] = phase | swap | placed | np.uint64(1 << 7) | (meta >> KOMI_SHIFT & KOMI_MASK) << np.uint64(8)


@kernel
def least_stones(state, maps, key, words):
    """key[0], which is black and white, becomes the same seen through the symmetry that makes them least."""
    num_words = len(words)
    for s in range(len(maps)):
        for i in range(2 * num_words):
            key[1, i] = ZERO
        for colour in range(2):
            for byte in range(8 * num_words):
                bits = state[colour * num_words + (byte >> 3)] >> np.uint64((byte & 7) * 8) & np.uint64(0xFF)
                if bits != ZERO:
                    for i in range(num_words):
                        key[1, colour * num_words + i] |= maps[s, byte, np.int64(bits), i]
        less = False
        for i in range(2 * num_words):
            if key[1, i] != key[0, i]:
                less = key[1, i] < key[0, i]
                break
        if less:
            for i in range(2 * num_words):
                key[0, i] = key[1, i]


@kernel
def home_of(key, size):
    """Index in a table of `size` entries, a power of two, of a key."""
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for word in key:
        mixed = (mixed ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ mixed >> np.uint64(32)) & np.uint64(size - 1))


@kernel
def probe(key, table, values):
    """The value kept for a key, or UNKNOWN."""
    home = home_of(key, len(values))
    for k in range(_PROBES):
        at = (home + k) & (len(values) - 1)
        same = True
        for i in range(len(key)):
            if table[at, i] != key[i]:
                same = False
                break
        if same:
            return np.int64(values[at])
    return UNKNOWN


@kernel
def keep(key, value, table, values):
    """Keep a value: in a free place near home, else over the entry at home."""
    home = home_of(key, len(values))
    chosen = home
    last = len(key) - 1
    for k in range(_PROBES):
        at = (home + k) & (len(values) - 1)
        if table[at, last] == ZERO:
            chosen = at
            break
    for i in range(len(key)):
        table[chosen, i] = key[i]
    values[chosen] = value


@kernel
def sort(numbers, count):
    """Sort the first `count` of some numbers in place, by insertion: there are few, and nothing is allocated."""
    for k in range(1, count):
        number = numbers[k]
        at = k
        while at > 0 and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number


@kernel
def expand(state, depth, all_moves, memory, counter, moves, spec):
    """The value of a state if it can be told at once, UNKNOWN if a limit forbids to look, or else _EXPANDED.

    Its children and its frame are made then.

    Args:
        depth: of the state below the one that is asked about.
        all_moves: whether every child is wanted and moves, int8 [A], gets the values of those known at once.
    """
    num_words = len(spec.words)
    over = 4 * num_words
    key, t = memory.key, memory.work
    if state[over] & OVER_BIT != ZERO:
        return LOSS
    canonical_key(state, memory.maps, key, spec)
    known = probe(key[0], memory.table, memory.values)
    if known != UNKNOWN and not all_moves:
        return known
    if (counter[0] >= counter[1] and not all_moves) or depth >= len(memory.children):
        return UNKNOWN
    counter[0] += 1
    seat = seat_of(state[over])
    others = slot(OTHERS, spec)
    load(t, state)
    legal_cells(t, others, spec)
    cells = memory.cells
    for i in range(num_words):
        cells[i] = t[others + i]
    count = 0
    value = LOSS
    extra = 0
    word = 0
    while True:
        action = -1
        while word < num_words and cells[word] == ZERO:
            word += 1
        if word < num_words:
            action = spec.bit_cell[64 * word + np.int64(lowest_bit(cells[word]))]
            cells[word] &= cells[word] - ONE
        else:
            if extra == 0:
                extra = 1
                if may_swap(state[over], spec):
                    action = spec.num_cells
            if action < 0 and extra == 1:
                extra = 2
                if may_spend_komi(state[over], spec):
                    action = spec.num_cells + 1
            if action < 0:
                break
        load(t, state)
        step_state(t, action, spec)
        child = memory.children[depth, count]
        store(t, child)
        if child[over] & OVER_BIT != ZERO:
            found = LOSS
        else:
            canonical_key(child, memory.maps, key, spec)
            found = probe(key[0], memory.table, memory.values)
        if seat_of(child[over]) != seat:
            found = -found
        if all_moves:
            memory.actions[count] = action
            moves[action] = found
        if found == WIN:  # no further child is needed
            value = WIN
            if not all_moves:
                break
        if found == UNKNOWN:
            # Try first what leaves the other colour least room and the own one most.
            colour = np.int64(state[over] & ONE)
            own, enemy = 0, 0
            for i in range(num_words):
                own += np.int64(popcount(child[(2 + colour) * num_words + i]))
                enemy += np.int64(popcount(child[(3 - colour) * num_words + i]))
            memory.order[depth, count] = (enemy - own) * 1024 + count
            count += 1
    if count == 0 or (value == WIN and not all_moves):
        canonical_key(state, memory.maps, key, spec)
        keep(key[0], value, memory.table, memory.values)
        return value
    sort(memory.order[depth], count)
    frame = memory.frames[depth]
    frame[_SEAT], frame[_VALUE], frame[_COUNT], frame[_NEXT] = seat, value, count, 0
    return _EXPANDED


@kernel
def last_tried(depth, memory):
    """Which child of the node at a depth was tried last."""
    return memory.order[depth, memory.frames[depth, _NEXT] - 1] & 1023


@kernel
def search(state, memory, counter, moves, spec):
    """Value of a state for its player: WIN, LOSS, or UNKNOWN where a limit came first.

    Args:
        counter: int64 [2], nodes searched, counted on, and how many there may be; read at every node, so that another
            thread can end the search.
        moves: int8 [A], gets the value of each legal move, which costs at least one node; or of length 0.
    """
    # Not recursive: a kernel that calls a recursive one crashes once it is loaded from Numba's cache.
    all_moves = len(moves) > 0
    found = expand(state, 0, all_moves, memory, counter, moves, spec)
    if found != _EXPANDED:
        return found
    depth = 0
    while True:
        frame = memory.frames[depth]
        if frame[_NEXT] < frame[_COUNT]:
            frame[_NEXT] += 1
            child = memory.children[depth, last_tried(depth, memory)]
            found = expand(child, depth + 1, False, memory, counter, moves, spec)
            if found == _EXPANDED:
                depth += 1
                continue
        else:
            found = frame[_VALUE]
            if found != UNKNOWN:
                node = state if depth == 0 else memory.children[depth - 1, last_tried(depth - 1, memory)]
                canonical_key(node, memory.maps, memory.key, spec)
                keep(memory.key[0], found, memory.table, memory.values)
            if depth == 0:
                return found
            depth -= 1
        # What was found is the value of the child tried last, for its own player.
        frame = memory.frames[depth]
        at = last_tried(depth, memory)
        if seat_of(memory.children[depth, at, 4 * len(spec.words)]) != frame[_SEAT]:
            found = -found
        cutoff = depth > 0 or not all_moves
        if not cutoff:
            moves[memory.actions[at]] = found
        if found == WIN:
            frame[_VALUE] = WIN
        elif found == UNKNOWN and frame[_VALUE] != WIN:
            frame[_VALUE] = UNKNOWN
        if cutoff and (found == WIN or (found == UNKNOWN and counter[0] >= counter[1])):
            frame[_COUNT] = frame[_NEXT]


@kernel
def search_each(states, found, memory, counter, no_moves, spec):
    """found[r] = the value of states[r], each by counter[1] nodes at most and nothing known before."""
    last = memory.table.shape[1] - 1
    for row in range(len(states)):
        for entry in range(len(memory.table)):
            memory.table[entry, last] = ZERO  # which no key has there
        counter[0] = 0
        found[row] = search(states[row], memory, counter, no_moves, spec)
