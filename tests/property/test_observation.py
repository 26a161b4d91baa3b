"""The planes a network sees, against the same planes worked out from a position in plain Python."""

import numpy as np
from hypothesis import given, settings

from game_positions import positions
from lifeline.env import BatchEnv
from lifeline.groups import shape_of
from lifeline.observation import NUM_PLANES, PLANES
from lifeline.regions import REGION_PLANES
from lifeline.rules import STONES, Position, Rules, groups


def tactics_of(position, side, colour):
    """The planes of what placements of a colour remove, and of its groups' links, by the plain rules."""
    game, num_cells = position.rules, position.rules.num_cells
    turn = position.turn + (colour != position.colour)
    mover = Position(game, position.stones, turn, 0, position.swapped, position.komi)
    captures, losses = [0.0] * num_cells, [0.0] * num_cells
    other = STONES.replace(colour, "")
    for cell in mover.legal_actions():
        if cell < num_cells:
            after = mover.play(cell).stones
            captures[cell] = (position.stones.count(other) - after.count(other)) / 4
            losses[cell] = (position.stones.count(colour) + 1 - after.count(colour)) / 4
    shape = shape_of(game.board, position.stones)
    own = [g for g in shape.groups if g.colour == colour]
    single = [0] * num_cells
    for group in own:
        partners = [g for g in own if g is not group and set(g.regions) & set(group.regions)]
        for cell in group.cells:
            single[cell] = len(partners) == 1
    return {f"{side}_captures": captures, f"{side}_losses": losses, f"{side}_single_link": single}


def regions_of(position, own, enemy):
    """The planes of regions and groups, by cell and everywhere."""
    shape, num_cells = shape_of(position.rules.board, position.stones), position.rules.num_cells
    cells = {name: [0.0] * num_cells for name, _ in REGION_PLANES if not name.endswith(("room", "room_odd"))}
    room = {"own": 0, "enemy": 0, "shared": 0}
    for number, region in enumerate(shape.regions):
        touching = [g for g in shape.groups if number in g.regions]
        of = {side: sum(g.colour == c for g in touching) for side, c in (("own", own), ("enemy", enemy))}
        for cell in region.cells:
            cells["region_size"][cell] = len(region.cells) / 8
            cells["region_odd"][cell] = len(region.cells) % 2
            for side, count in of.items():
                cells[f"region_{side}_groups"][cell] = count / 4
        sides = [side for side, count in of.items() if count]
        if sides:
            room[sides[0] if len(sides) == 1 else "shared"] += len(region.cells)
    for group in shape.groups:
        for cell in group.cells:
            cells["group_size"][cell] = len(group.cells) / 8 if group.regions else 0
            cells["group_regions"][cell] = len(group.regions) / 4
    everywhere = {f"{side}_room": count / 8 for side, count in room.items()}
    return cells, everywhere | {f"{side}_room_odd": count % 2 for side, count in room.items()}


def planes_of(position):
    """float32 [C, H, W], by the words of the table of planes."""
    game, geometry = position.rules, position.rules.board
    own, enemy = position.colour, STONES.replace(position.colour, "")
    reach = {"b": set(), "w": set()}
    for region in groups(geometry, position.stones, "."):
        for colour in {position.stones[c] for cell in region for c in geometry.neighbors[cell]} - {"."}:
            reach[colour] |= region
    in_opening = position.turn < game.opening_turns
    komi = {"b": 0, "w": position.komi}
    everywhere = {
        "board": 1,
        "second_stone": position.placed,
        "opening_left": max(0, game.opening_turns - position.turn) / 4,
        "swap_open": position.may_swap,
        "no_adjacent": in_opening and (game.opening == "strong_pie" or game.adjacent_setup == "forbidden"),
        "own_komi": komi[own] / 10,
        "enemy_komi": komi[enemy] / 10,
    }
    cells = {
        "own": [s == own for s in position.stones],
        "enemy": [s == enemy for s in position.stones],
        "own_reach": [c in reach[own] for c in range(game.num_cells)],
        "enemy_reach": [c in reach[enemy] for c in range(game.num_cells)],
    }
    if not in_opening and not position.is_over:
        for side, colour in (("own", own), ("enemy", enemy)):
            cells |= tactics_of(position, side, colour)
            everywhere[f"{side}_groups"] = len(groups(geometry, position.stones, colour)) / 8
    if not position.is_over:
        of_regions = regions_of(position, own, enemy)
        cells |= of_regions[0]
        everywhere |= of_regions[1]
    planes = np.zeros((NUM_PLANES, *geometry.grid_shape), np.float32)
    for number, (name, _) in enumerate(PLANES):
        for cell, (q, z) in enumerate(geometry.coords):
            value = everywhere[name] if name in everywhere else cells[name][cell] if name in cells else 0
            planes[number, z + game.base - 1, q + game.base - 1] = value
    return planes


@settings(max_examples=80)
@given(position=positions())
def test_planes_are_those_of_the_table(position):
    env = BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    assert env.observation.dtype == np.float32
    assert np.array_equal(env.observation[0], planes_of(position))


@settings(max_examples=20)
@given(position=positions(running=True))
def test_planes_follow_each_step(position):
    """Nothing of the position before is left in arrays that are used again."""
    env = BatchEnv(position.rules, 1)
    env.reset(positions=[position])
    env.observation  # noqa: B018
    for _ in range(3):
        actions = np.flatnonzero(env.legal_action_mask[0])
        if len(actions):
            env.step(actions[len(actions) // 2 :][:1])
        assert np.array_equal(env.observation[0], planes_of(env.position(0)))


def test_every_plane_says_something_of_some_position():
    """The comparison above would not see a plane that is zero on both sides."""
    rules, used = Rules(4), np.zeros(NUM_PLANES, bool)
    for kind in (rules, Rules(4, "komi_pie", 5, "forbidden")):
        env = BatchEnv(kind, 300)
        env.step_random(np.arange(300) % 40, np.array([1], np.uint64))
        used |= env.observation.any(axis=(0, 2, 3))
    assert used.all(), [name for (name, _), u in zip(PLANES, used, strict=True) if not u]


def test_cells_off_the_board_are_zero_in_every_plane():
    env = BatchEnv(Rules(4, "komi_pie", 5), 1)
    off = np.ones(env.grid_shape[0] * env.grid_shape[1], bool)
    off[env.rules.board.cell_to_grid] = False
    assert np.count_nonzero(off) == 7 * 7 - 37
    assert not env.observation.reshape(NUM_PLANES, -1)[:, off].any()


def test_actions_lead_to_the_places_of_their_cells():
    env = BatchEnv(Rules(4), 1)
    env.reset(positions=[Position.start(env.rules).play("c4,g1").play("swap")])
    enemy = env.observation[0, [name for name, _ in PLANES].index("enemy")].ravel()
    cells = [env.rules.board.cell(label) for label in ("c4", "g1")]
    assert sorted(np.flatnonzero(enemy)) == sorted(env.action_to_grid[cells])
    assert env.action_to_grid[-2:].tolist() == [-1, -1]


def test_the_views_of_the_two_colours_differ_by_more_than_colour():
    """A swap changes the mover, not the colour to place: the planes stay, but for the swap itself."""
    before = Position.start(Rules(3)).play("a1,e3")
    changed = np.flatnonzero((planes_of(before) != planes_of(before.play("swap"))).any(axis=(1, 2)))
    assert [PLANES[number][0] for number in changed] == ["swap_open"]
