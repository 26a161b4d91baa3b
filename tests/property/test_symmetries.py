"""The twelve symmetries of the board are a group, and the game is the same under each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import ALL_BASES, legal_actions, mapped, positions, reach_cells, rules
from lifeline import kernels
from lifeline.board import board
from lifeline.env import BatchEnv
from lifeline.observation import NUM_PLANES, encode_planes, grid_maps
from lifeline.rules import Rules

SYMMETRIES = st.integers(0, 11)


@pytest.mark.parametrize("base", ALL_BASES)
def test_symmetries_are_twelve_different_permutations_and_the_first_is_the_identity(base):
    perms = board(base).symmetries
    cells = np.arange(board(base).num_cells)
    assert perms.shape == (12, len(cells))
    assert np.array_equal(perms[0], cells)
    assert all(np.array_equal(np.sort(perm), cells) for perm in perms)
    assert len({tuple(perm) for perm in perms.tolist()}) == 12


@pytest.mark.parametrize("base", ALL_BASES)
def test_symmetries_are_closed_under_composition_and_inverse(base):
    perms = [tuple(perm) for perm in board(base).symmetries.tolist()]
    for one in perms:
        assert tuple(np.argsort(one).tolist()) in perms
        for other in perms:
            assert tuple(one[cell] for cell in other) in perms


@pytest.mark.parametrize("base", ALL_BASES)
def test_turns_make_a_cycle_of_six_and_mirrors_undo_themselves(base):
    perms = board(base).symmetries
    turned = perms[0]
    for number in range(6):
        assert np.array_equal(turned, perms[number])
        turned = perms[1][turned]
    assert np.array_equal(turned, perms[0])
    for mirror in perms[6:]:
        assert np.array_equal(mirror[mirror], perms[0])


@pytest.mark.parametrize("base", ALL_BASES)
def test_symmetries_keep_neighbours_neighbours(base):
    geometry = board(base)
    for perm in geometry.symmetries:
        for cell in range(geometry.num_cells):
            assert {int(perm[c]) for c in geometry.neighbors[cell]} == set(geometry.neighbors[perm[cell]])


@pytest.mark.parametrize("base", ALL_BASES)
def test_symmetries_of_actions_keep_swap_and_komi(base):
    env = BatchEnv(Rules(base), 1)
    cells = env.rules.num_cells
    assert np.array_equal(env.symmetries[:, :cells], env.rules.board.symmetries)
    assert (env.symmetries[:, cells:] == [cells, cells + 1]).all()


@settings(max_examples=60)
@given(position=positions(running=True), symmetry=SYMMETRIES, data=st.data())
def test_moves_and_their_results_map_with_the_board(position, symmetry, data):
    env, other = BatchEnv(position.rules, 1), BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    other.reset(positions=[mapped(position, symmetry)])
    to = env.symmetries[symmetry]
    assert legal_actions(other) == sorted(int(to[a]) for a in legal_actions(env))
    action = data.draw(st.sampled_from(legal_actions(env)))
    env.step(np.array([action]))
    other.step(to[[action]])
    assert other.position(0) == mapped(env.position(0), symmetry)
    assert other.outcome[0] == env.outcome[0]
    assert other.to_play[0] == env.to_play[0]


@settings(max_examples=60)
@given(position=positions(), symmetry=SYMMETRIES)
def test_reach_maps_with_the_board(position, symmetry):
    to = position.rules.board.symmetries[symmetry]
    other = mapped(position, symmetry)
    reach = reach_cells(kernels.encode_position(position), position)
    assert reach_cells(kernels.encode_position(other), other) == [{int(to[c]) for c in cells} for cells in reach]


@settings(max_examples=10)
@given(position=positions(rules(bases=(3, 4))), symmetry=SYMMETRIES)
def test_the_reference_maps_with_the_board_too(position, symmetry):
    to = [*position.rules.board.symmetries[symmetry].tolist(), position.rules.swap_action, position.rules.komi_action]
    assert mapped(position, symmetry).legal_actions() == sorted(to[a] for a in position.legal_actions())


@settings(max_examples=30)
@given(position=positions(), symmetry=SYMMETRIES)
def test_planes_encoded_under_a_symmetry_are_those_of_the_mapped_position(position, symmetry):
    game = position.rules
    height, width = game.board.grid_shape
    planes = np.zeros((1, NUM_PLANES, height * width), np.float32)
    maps, choice = grid_maps(game.board), np.array([symmetry])
    spec = kernels.spec_of(game)
    work = np.zeros(kernels.work_size(len(spec.words)), np.uint64)
    encode_planes(kernels.encode_position(position)[None], maps, choice, planes, work, spec)
    env = BatchEnv(game, 1)
    env.reset(positions=[mapped(position, symmetry)])
    assert np.array_equal(planes.reshape(env.observation.shape), env.observation)
