"""Hexhex geometry: counts, neighbours, labels, the grid."""

import numpy as np
import pytest

from lifeline.board import Board, board
from lifeline.errors import LifelineError, NotationError, RulesError

BASES = range(3, 13)


@pytest.mark.parametrize("base", BASES)
def test_cell_and_row_counts(base):
    geometry = board(base)
    assert geometry.num_cells == len(geometry.coords) == len(geometry.labels) == 3 * base * (base - 1) + 1
    assert [len(r) for r in geometry.rows] == [base + min(k, 2 * base - 2 - k) for k in range(2 * base - 1)]
    assert [cell for row in geometry.rows for cell in row] == list(range(geometry.num_cells))


@pytest.mark.parametrize("base", BASES)
def test_corners_have_three_neighbours_edges_four_and_the_rest_six(base):
    counts = [len(cells) for cells in board(base).neighbors]
    assert counts.count(3) == 6
    assert counts.count(4) == 6 * (base - 2)
    assert counts.count(6) == 3 * (base - 1) * (base - 2) + 1
    assert len(counts) == counts.count(3) + counts.count(4) + counts.count(6)


@pytest.mark.parametrize("base", BASES)
def test_being_neighbours_is_mutual_and_is_one_step_on_the_board(base):
    geometry = board(base)
    for cell, cells in enumerate(geometry.neighbors):
        for other in cells:
            assert cell in geometry.neighbors[other]
            (q, z), (p, y) = geometry.coords[cell], geometry.coords[other]
            assert (p - q, y - z) in {(1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1)}


@pytest.mark.parametrize("base", BASES)
def test_ring_goes_round_each_cell_in_cyclic_order(base):
    geometry = board(base)
    for ring in geometry.ring:
        for one, next_one in zip(ring, np.roll(ring, -1), strict=True):
            if one >= 0 and next_one >= 0:
                assert next_one in geometry.neighbors[one]


@pytest.mark.parametrize("base", BASES)
def test_ring_is_minus_one_off_the_board_only(base):
    geometry = board(base)
    for cell, ring in enumerate(geometry.ring):
        assert sorted(int(c) for c in ring if c >= 0) == sorted(geometry.neighbors[cell])
        assert len(set(ring[ring >= 0].tolist())) == len(geometry.neighbors[cell])


def test_base_3_labels_of_the_rules():
    rows = [[board(3).labels[c] for c in row] for row in board(3).rows]
    assert rows == [
        ["e1", "e2", "e3"],
        ["d1", "d2", "d3", "d4"],
        ["c1", "c2", "c3", "c4", "c5"],
        ["b1", "b2", "b3", "b4"],
        ["a1", "a2", "a3"],
    ]


def test_centre_of_base_3_is_c3_and_touches_six_cells():
    geometry = board(3)
    assert geometry.coords[geometry.cell("c3")] == (0, 0)
    around = {geometry.labels[c] for c in geometry.neighbors[geometry.cell("c3")]}
    assert around == {"c2", "c4", "d2", "d3", "b2", "b3"}


def test_labels_are_read_without_regard_to_case_and_spaces():
    assert board(3).cell(" E3 ") == board(3).cell("e3") == 2


@pytest.mark.parametrize("base", BASES)
def test_every_label_leads_back_to_its_cell(base):
    geometry = board(base)
    assert [geometry.cell(label) for label in geometry.labels] == list(range(geometry.num_cells))


@pytest.mark.parametrize("label", ["", "c", "3", "c0", "c6", "a4", "f1", "c03", "c3x", "cc3", "swap", "-1", "ｃ3"])
def test_a_label_off_the_board_is_named_in_the_error(label):
    with pytest.raises(NotationError, match="base 3"):
        board(3).cell(label)


@pytest.mark.parametrize("base", [2, 13, 0, -3, "3", True, 3.0, None, (3,)])
def test_a_base_that_does_not_exist_is_refused(base):
    with pytest.raises(RulesError, match="from 3 to 12"):
        board(base)


def test_errors_are_of_one_tree_and_are_value_errors():
    for error in (RulesError, NotationError):
        assert issubclass(error, LifelineError)
        assert issubclass(error, ValueError)


def test_one_object_a_size():
    assert board(5) is board(5)
    assert board(5) == Board(5)


@pytest.mark.parametrize("base", BASES)
def test_grid_has_one_place_a_cell_and_keeps_neighbours_close(base):
    geometry = board(base)
    height, width = geometry.grid_shape
    places = geometry.cell_to_grid
    assert height == width == 2 * base - 1
    assert len(set(places.tolist())) == geometry.num_cells
    assert places.min() >= 0
    assert places.max() < height * width
    for cell, cells in enumerate(geometry.neighbors):
        steps = {int(places[c] - places[cell]) for c in cells}
        assert steps <= {1, -1, width, -width, width - 1, 1 - width}


@pytest.mark.parametrize("base", BASES)
def test_grid_rows_are_the_rows_of_the_board(base):
    geometry = board(base)
    for number, row in enumerate(geometry.rows):
        assert {int(geometry.cell_to_grid[c]) // geometry.grid_shape[1] for c in row} == {number}
