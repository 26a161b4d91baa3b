"""The kernels' building blocks: ring tables, bit layout, and shifts across words, against plain neighbour lists."""

import numpy as np
import pytest

from lifeline import kernels
from lifeline.board import board
from lifeline.rules import Rules


def runs(code):
    """The cyclic runs of set bits of a six-bit ring code, as tuples of bit numbers in order."""
    if code == 63:
        return [tuple(range(6))]
    starts = [k for k in range(6) if code >> k & 1 and not code >> (k - 1) % 6 & 1]
    found = []
    for start in starts:
        run = [start]
        while code >> (run[-1] + 1) % 6 & 1:
            run.append((run[-1] + 1) % 6)
        found.append(tuple(run))
    return found


def test_arcs_counts_the_cyclic_runs_of_every_code():
    arcs = kernels.spec_of(Rules(3)).arcs
    assert arcs.tolist() == [len(runs(code)) for code in range(64)]
    assert (arcs[0], arcs[0b000001], arcs[0b100001], arcs[0b010101], arcs[63]) == (0, 1, 1, 3, 1)


def test_the_verdict_tells_enemies_cut_off_and_empty_neighbours_apart():
    table = kernels.spec_of(Rules(3)).verdict
    for enemy in range(64):
        for empty in range(64):
            if enemy & empty:
                continue
            cut_off = [r[0] for r in runs(enemy) if not (empty >> (r[0] - 1) % 6 & 1 or empty >> (r[-1] + 1) % 6 & 1)]
            several = kernels.SEVERAL if len(runs(empty)) > 1 else 0
            assert table[enemy << 6 | empty] == sum(1 << k for k in cut_off) + several, (enemy, empty)


@pytest.mark.parametrize("base", range(3, 13))
def test_each_cell_has_a_bit_of_its_own_and_each_row_a_bit_of_padding(base):
    spec = kernels.spec_of(Rules(base))
    bits = spec.cell_bit.tolist()
    assert len(set(bits)) == spec.num_cells
    assert spec.bit_cell[spec.cell_bit].tolist() == list(range(spec.num_cells))
    assert np.count_nonzero(spec.bit_cell >= 0) == spec.num_cells
    assert all(bit % int(spec.stride) < 2 * base - 1 for bit in bits)
    assert max(bits) < 64 * len(spec.words)
    assert sum(int(w).bit_count() for w in spec.board) == spec.num_cells


@pytest.mark.parametrize("base", range(3, 13))
def test_ring_bits_off_the_board_are_never_set(base):
    spec, geometry = kernels.spec_of(Rules(base)), board(base)
    on_board = set(spec.cell_bit.tolist())
    for cell in range(spec.num_cells):
        for neighbour, bit in zip(geometry.ring[cell], spec.ring_bit[cell], strict=True):
            assert (int(bit) in on_board) == (neighbour >= 0)
            assert neighbour < 0 or bit == spec.cell_bit[neighbour]


def to_words(cells, spec):
    value = sum(1 << int(spec.cell_bit[c]) for c in cells)
    return [value >> 64 * i & (1 << 64) - 1 for i in range(len(spec.words))]


def to_cells(words, spec):
    value = sum(int(w) << 64 * i for i, w in enumerate(words))
    return {c for c, bit in enumerate(spec.cell_bit) if value >> int(bit) & 1}


# One, two and three words have kernels of their own; more share one: base 8 has the fewest of these, base 12 the most.
@pytest.mark.parametrize("base", [3, 4, 5, 6, 7, 8, 12])
def test_dilating_one_cell_gives_it_and_its_neighbours(base):
    spec, geometry = kernels.spec_of(Rules(base)), board(base)
    words = len(spec.words)
    assert words == -(-2 * base * (2 * base - 1) // 64)
    t = np.zeros(kernels.work_size(words), np.uint64)
    for cell in range(spec.num_cells):
        t[:words] = to_words([cell], spec)
        kernels.dilate(t, 0, words, spec)
        assert to_cells(t[words : 2 * words], spec) == {cell, *geometry.neighbors[cell]}


@pytest.mark.parametrize("base", [3, 4, 5, 7, 8, 12])
def test_flooding_follows_a_path_that_winds_through_all_words(base):
    """Every other row is open, with a gate to the next at alternating ends: the longest way from end to end."""
    spec, geometry = kernels.spec_of(Rules(base)), board(base)
    words = len(spec.words)
    path = set()
    for number, row in enumerate(geometry.rows):
        if number % 2 == 0:
            path |= set(row)
        else:
            path.add(row[-1] if number % 4 == 1 else row[0])
    for start in (min(path), max(path), sorted(path)[len(path) // 2]):
        t = np.zeros(kernels.work_size(words), np.uint64)
        t[:words] = to_words([start], spec)
        t[words : 2 * words] = to_words(path, spec)
        kernels.flood(t, 0, words, spec)
        assert to_cells(t[:words], spec) == path


@pytest.mark.parametrize("base", [3, 4, 5, 7, 8, 12])
def test_a_flood_that_may_stop_early_says_whether_it_got_there(base):
    """Between random open cells: true just when all wanted ones are connected, and nothing else is flooded."""
    spec = kernels.spec_of(Rules(base))
    words, rng = len(spec.words), np.random.default_rng(base)
    outcomes = set()
    for _ in range(200):
        open_cells = np.flatnonzero(rng.random(spec.num_cells) < 0.6)
        start, *wanted = rng.choice(open_cells, 1 + rng.integers(0, 4)).tolist()
        t = np.zeros(kernels.work_size(words), np.uint64)
        for at, cells in enumerate(([start], open_cells, [start], wanted)):
            t[at * words : (at + 1) * words] = to_words(set(cells), spec)
        kernels.flood(t, 0, words, spec)
        reachable = to_cells(t[:words], spec)
        got_there = kernels.flood_until(t, 2 * words, words, 3 * words, spec)
        flooded = to_cells(t[2 * words : 3 * words], spec)
        assert got_there == (set(wanted) <= reachable)
        assert set(wanted) & reachable <= flooded <= reachable
        assert got_there or flooded == reachable
        outcomes.add(got_there)
    assert outcomes == {True, False}


@pytest.mark.parametrize("base", [3, 5, 7, 12])
def test_flooding_stops_at_the_edge_of_what_is_open(base):
    """Rows apart stay apart: a flood of one row reaches none of the others, and nothing wraps round the edges."""
    spec, geometry = kernels.spec_of(Rules(base)), board(base)
    words = len(spec.words)
    open_cells = {c for row in geometry.rows[::2] for c in row}
    for row in geometry.rows[::2]:
        t = np.zeros(kernels.work_size(words), np.uint64)
        t[:words] = to_words([row[0]], spec)
        t[words : 2 * words] = to_words(open_cells, spec)
        kernels.flood(t, 0, words, spec)
        assert to_cells(t[:words], spec) == set(row)


@pytest.mark.parametrize("komi", [0, 99])
def test_equal_rules_share_one_kernel_view(komi):
    rules = Rules(5, "komi_pie", komi)
    assert kernels.spec_of(rules) is kernels.spec_of(Rules(5, "komi_pie", komi))
