"""Groups and regions agree with the removal rule of the specification."""

from hypothesis import given
from hypothesis import strategies as st

from game_positions import ALL_BASES, mapped, positions
from lifeline import board
from lifeline.groups import Group, Region, shape_of
from lifeline.rules import STONES, groups, is_dead, remove_dead


@st.composite
def boards(draw):
    """Any filling of a board, reachable or not: crowded ones have many regions and dead groups."""
    geometry = board(draw(st.sampled_from(list(ALL_BASES)[:4])))
    signs = draw(st.sampled_from(["bw", "bw.", "bw..", "bw.....", "b.", "b"]))
    return geometry, tuple(draw(st.lists(st.sampled_from(signs), min_size=(n := geometry.num_cells), max_size=n)))


@given(boards())
def test_a_group_is_dead_exactly_when_the_rules_remove_it(drawn):
    geometry, stones = drawn
    shape = shape_of(geometry, stones)
    for colour in STONES:
        after = remove_dead(geometry, stones, colour)
        for group in shape.groups:
            if group.colour == colour:
                assert group.alive == all(after[cell] == colour for cell in group.cells)
                assert group.alive != is_dead(geometry, stones, frozenset(group.cells))


@given(boards())
def test_a_group_is_alive_exactly_when_it_shares_a_region_with_another_of_its_colour(drawn):
    shape = shape_of(*drawn)
    for group in shape.groups:
        others = [g for g in shape.groups if g.colour == group.colour and g.cells != group.cells]
        assert group.alive == any(set(group.regions) & set(other.regions) for other in others)
        shared = {index for other in others for index in group.regions if index in other.regions}
        assert group.lifelines == tuple(sorted(shared))


@given(boards())
def test_groups_and_regions_part_the_board_and_know_what_they_touch(drawn):
    geometry, stones = drawn
    shape = shape_of(geometry, stones)
    pieces = [piece.cells for piece in (*shape.groups, *shape.regions)]
    assert sorted(cell for cells in pieces for cell in cells) == list(range(geometry.num_cells))
    assert [g.cells[0] for g in shape.groups] == sorted(g.cells[0] for g in shape.groups)
    assert [r.cells for r in shape.regions] == [tuple(sorted(r)) for r in groups(geometry, stones, ".")]
    for index, region in enumerate(shape.regions):
        near = {stones[n] for cell in region.cells for n in geometry.neighbors[cell]} - {"."}
        assert region.colours == "".join(sorted(near))
        for group in shape.groups:
            touches = any(n in region.cells for cell in group.cells for n in geometry.neighbors[cell])
            assert (index in group.regions) == touches


@given(positions())
def test_no_dead_group_stands_in_a_game_after_its_opening(position):
    if position.turn >= position.rules.opening_turns:
        assert all(group.alive for group in shape_of(position.rules.board, position.stones).groups)


@given(positions(), st.integers(0, 11))
def test_symmetries_keep_lives_and_sizes(position, symmetry):
    def summary(stones):
        shape = shape_of(position.rules.board, stones)
        listed = sorted((g.colour, len(g.cells), g.alive, len(g.regions)) for g in shape.groups)
        return listed, sorted((len(r.cells), r.colours) for r in shape.regions)

    assert summary(position.stones) == summary(mapped(position, symmetry).stones)


def test_a_small_board_in_full():
    # Black's two stones meet in the region at the left; White's wall of five has nobody to meet.
    shape = shape_of(board(3), tuple("b.w" + "..w." + ".bw.." + "..w." + "..w"))
    assert shape.regions == (
        Region((1, 3, 4, 7, 12, 13, 16, 17), "bw"),
        Region((6, 10, 11, 15), "w"),
    )
    assert shape.groups == (
        Group("b", (0,), (0,), (0,)),
        Group("w", (2, 5, 9, 14, 18), (0, 1), ()),
        Group("b", (8,), (0,), (0,)),
    )


def test_empty_and_full_boards():
    geometry = board(3)
    assert shape_of(geometry, (".",) * 19).groups == ()
    assert shape_of(geometry, (".",) * 19).regions == (Region(tuple(range(19)), ""),)
    full = shape_of(geometry, ("b",) * 19)
    assert full.regions == ()
    assert full.groups == (Group("b", tuple(range(19)), (), ()),)
