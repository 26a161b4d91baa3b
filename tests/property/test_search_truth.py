"""Search against the truth, and each game in a batch by itself."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import play_randomly
from lifeline import BatchEnv, Position, Rules
from lifeline.kernels import encode_position
from lifeline.play.players import NetworkPlayer, RandomPlayer, RolloutPlayer, choose_move
from lifeline.search.evaluator import UniformEvaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.search import BatchSearch
from lifeline.solver import NO_MOVE, Solver
from lifeline.streams import derive
from training.backward import BackwardSolver

RULES = Rules(3)


@cache
def minimax(position):
    """Value for the player to move, by nothing but the reference."""
    if position.is_over:
        return -1
    for action in position.legal_actions():
        after = position.play(action)
        if minimax(after) * (1 if after.to_play == position.to_play else -1) == 1:
            return 1
    return -1


def reached_value(position, action):
    """Value for the player to move of what an action leads to."""
    after = position.play(int(action))
    return minimax(after) * (1 if after.to_play == position.to_play else -1)


def late_positions(count, most_empty, seed=0):
    """Running base-3 positions with few empty cells, reached by random play, all different."""
    found = {}
    while len(found) < count:
        position = play_randomly(Position.start(RULES), 10 + seed % 12, seed)
        seed += 1
        if not position.is_over and position.stones.count(".") <= most_empty:
            found[position.text()] = position
    return list(found.values())


def near_the_end(rules, count, most_states):
    """Running positions that few others follow, reached by random play, all different."""
    found, seed = {}, 0
    while len(found) < count:
        end = play_randomly(Position.start(rules), 4 * rules.num_cells, seed)
        position = play_randomly(Position.start(rules), end.turn - 1 - seed % 6, seed)
        seed += 1
        few = not position.is_over and position.stones.count(".") <= 3 * rules.base
        if few and followers(position, most_states) <= most_states:
            found[position.text()] = position
    return list(found.values())


def followers(position, most):
    """How many positions can follow; more than `most` are not counted on."""
    known, waiting = {position}, [position]
    while waiting and len(known) <= most:
        here = waiting.pop()
        fresh = {here.play(action) for action in here.legal_actions()} - known if not here.is_over else set()
        known |= fresh
        waiting += fresh
    return len(known)


def run_search(positions, evaluator, simulations, noise=0.0, keys=None):
    env = BatchEnv(RULES, len(positions))
    env.reset(positions=positions)
    policy = GumbelPolicy(GumbelConstants(noise=noise, max_considered=32))
    search = BatchSearch(lambda: BatchEnv(RULES, len(positions)), evaluator, policy, simulations)
    return search.run(env, np.zeros(len(positions), np.uint64) if keys is None else keys)


def test_search_agrees_with_minimax_on_late_positions():
    positions = late_positions(60, most_empty=6)
    values = [minimax(p) for p in positions]
    assert {1, -1} == set(values)
    result = run_search(positions, UniformEvaluator(), 10_000)
    for position, value, action, root in zip(positions, values, result.actions, result.root_value, strict=True):
        assert reached_value(position, action) == value, position.text()
        assert np.sign(root) == value, position.text()


def test_rollout_search_agrees_with_minimax_on_late_positions():
    positions = late_positions(40, most_empty=6)
    player = RolloutPlayer(RULES, 20_000)
    for position in positions:
        assert reached_value(position, choose_move(player, position, seed=1)) == minimax(position), position.text()


@pytest.mark.parametrize("symmetric", [True, False])
def test_solver_agrees_with_minimax(symmetric):
    solver = Solver(RULES, 16, symmetric)
    for position in late_positions(60, most_empty=8, seed=1000):
        solution = solver.solve(position)
        assert solution.value == minimax(position)
        wins = tuple(a for a in position.legal_actions() if reached_value(position, a) == 1)
        assert solution.winning == wins


@pytest.mark.parametrize(
    "rules",
    [Rules(3, "weak_pie"), Rules(3, "komi_pie", komi=2), Rules(5)],
    ids=lambda r: f"{r.base} {r.opening}",
)
def test_all_ways_to_ask_the_solver_agree_with_minimax(rules):
    """On boards of one word and of several, with symmetries and without."""
    backward, values = BackwardSolver(rules, 100_000), []
    solvers = [Solver(rules, 14, symmetric) for symmetric in (True, False)]
    count, most = (25, 400) if rules.base == 3 else (5, 80)
    for position in near_the_end(rules, count, most):
        state, value = encode_position(position), minimax(position)
        wins = {a for a in position.legal_actions() if reached_value(position, a) == 1}
        for solver in solvers:
            solution = solver.solve(position)
            assert solution.value == value == solver.values(state[None], 100_000)[0], position.text()
            assert set(solution.winning) == wins, position.text()
        found, moves = backward.solve(state[None])
        assert found[0] == value
        assert np.flatnonzero(moves[0] != NO_MOVE).tolist() == position.legal_actions()
        assert set(np.flatnonzero(moves[0] == 1)) == wins
        values.append(value)
    assert rules.base > 3 or set(values) == {1, -1}


def test_solver_says_when_a_limit_came_first():
    solution = Solver(RULES, table_bits=10).solve(Position.start(RULES), max_nodes=500)
    assert solution.value is None
    assert solution.winning is None


@pytest.mark.slow
def test_solver_knows_the_whole_of_base_3():
    solver = Solver(RULES, table_bits=22)
    start, values = Position.start(RULES), []
    for first in range(19):
        for second in start.play(first).legal_actions():
            if first < second < 19:
                after = Position.parse(start.play(first).play(second).text().replace("- 0", "s 0"), RULES)
                values.append(solver.solve(after).value)
    assert (values.count(-1), values.count(1)) == (96, 33)


class Hashed:
    """Arbitrary but fixed priors and values for every state."""

    def evaluate(self, leaves):
        states = leaves.gather()
        seeds = derive(
            states[:, 0] ^ states[:, 1] << np.uint64(31), (states[:, 4] & np.uint64(0xFFFFF)).astype(np.int64)
        )
        draws = [np.random.default_rng(s).standard_normal(leaves.num_actions + 1) for s in seeds]
        out = np.array(draws, np.float32)
        return 2 * out[:, 1:], np.tanh(out[:, 0])


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 7))
@settings(max_examples=15)
def test_a_search_does_not_depend_on_its_neighbours(seed, size):
    positions = [play_randomly(Position.start(RULES), k * 3, seed + k) for k in range(size)]
    keys = np.arange(seed, seed + size, dtype=np.uint64)
    together = run_search(positions, Hashed(), 20, noise=1.0, keys=keys)
    order = np.random.default_rng(seed).permutation(size)
    shuffled = run_search([positions[i] for i in order], Hashed(), 20, noise=1.0, keys=keys[order])
    for name in ("actions", "policy_target", "root_value", "visit_counts", "action_values"):
        assert (getattr(together, name)[order] == getattr(shuffled, name)).all()
        for row in range(size):
            alone = run_search([positions[row]], Hashed(), 20, noise=1.0, keys=keys[row : row + 1])
            assert (getattr(alone, name)[0] == getattr(together, name)[row]).all()


@given(seed=st.integers(0, 2**32 - 1), simulations=st.integers(2, 40))
@settings(max_examples=20)
def test_improved_policy_is_a_distribution_over_legal_actions(seed, simulations):
    positions = [play_randomly(Position.start(RULES), k * 2, seed + k) for k in range(8)]
    result = run_search(positions, Hashed(), simulations, noise=1.0, keys=np.arange(8, dtype=np.uint64))
    for position, target, visits, action in zip(
        positions, result.policy_target, result.visit_counts, result.actions, strict=True
    ):
        legal = position.legal_actions()
        if not legal:
            continue
        assert action in legal
        assert visits.sum() == simulations
        assert target.sum() == pytest.approx(1, abs=1e-5)
        assert (np.delete(target, legal) == 0).all()
        assert (np.delete(visits, legal) == 0).all()


@pytest.mark.parametrize(
    "player", [RandomPlayer(), RolloutPlayer(RULES, 50, threads=2), NetworkPlayer(RULES, Hashed(), 8)]
)
def test_a_players_choice_hangs_on_its_own_game_and_key_alone(player):
    positions = [play_randomly(Position.start(RULES), 5, seed) for seed in range(9)]
    positions = [p for p in positions if not p.is_over]
    env, keys = BatchEnv(RULES, len(positions)), np.arange(7, 7 + len(positions), dtype=np.uint64)
    env.reset(positions=positions)
    rows = np.arange(len(positions))
    together = player.choose(env, rows, keys)
    assert env.legal_action_mask[rows, together].all()
    for row in rows:
        assert player.choose(env, rows[row : row + 1], keys[row : row + 1])[0] == together[row]
