"""PUCT: its score, its signs, decided games, leaves side by side, trees that are kept."""

import numpy as np
import pytest

from gtp_talk import Hash
from lifeline import BatchEnv, ConfigError, Position, Rules
from lifeline.kernels import encode_position
from lifeline.search.evaluator import UniformEvaluator
from lifeline.search.prover import SolverProver
from lifeline.search.puct import PuctConstants, PuctPolicy, mix_noise
from lifeline.search.search import BatchSearch
from lifeline.solver import Solver
from toy_game import ToyEnv, ToyMinimax, minimax, moves, play

KEYS = np.arange(1, 1000, dtype=np.uint64)
RULES = Rules(3)


def searcher(batch, evaluator, simulations, reuse=False, rules=RULES, **constants):
    policy = PuctPolicy(PuctConstants(**constants))
    return BatchSearch(lambda: BatchEnv(rules, batch * policy.num_leaves), evaluator, policy, simulations, reuse)


def env_of(*positions):
    env = BatchEnv(positions[0].rules, len(positions))
    env.reset(positions=list(positions))
    return env


def some_positions(count, plies, seed=0, rules=RULES):
    out = []
    while len(out) < count:
        env = BatchEnv(rules, 4 * count)
        env.step_random(np.full(4 * count, plies), np.array([seed], np.uint64))
        out += [env.position(i) for i in range(env.batch_size) if not env.terminated[i]]
        seed += 1
    return out[:count]


def search(env, evaluator, simulations, **constants):
    return searcher(env.batch_size, evaluator, simulations, **constants).run(env, KEYS[: env.batch_size])


class Constant:
    def __init__(self, value):
        self.value = value

    def evaluate(self, leaves):
        priors, values = UniformEvaluator().evaluate(leaves)
        return priors, values + np.float32(self.value)


def reference(position, evaluator, simulations, c):
    """The same search in plain Python, one leaf at a time, for constants without noise."""

    class Node:
        def __init__(self, position):
            self.position, self.children, self.n, self.w = position, {}, 0, 0.0  # w for seat 0
            env = env_of(position)
            if position.is_over:
                self.value, self.decided, self.prior = (1.0 if position.winner == 0 else -1.0), True, {}
                return
            logits, values = evaluator.evaluate(env)
            legal = np.flatnonzero(env.legal_action_mask[0])
            e = np.exp(logits[0, legal] - logits[0, legal].max())
            self.prior = dict(zip(legal.tolist(), (e / e.sum()).tolist(), strict=True))
            self.sign = 1 if position.to_play == 0 else -1
            self.value, self.decided = float(values[0]) * self.sign, False

    def pick(node, root):
        counts = {a: (node.children[a].n if a in node.children else 0) for a in node.prior}
        total, seen = sum(counts.values()), sum(node.prior[a] for a in node.children)
        k = (c.c_puct + c.c_log * np.log((total + c.c_base) / c.c_base)) * np.sqrt(total + 0.01)
        fpu = node.sign * node.w / node.n - (c.root_fpu_reduction if root else c.fpu_reduction) * np.sqrt(seen)
        fpu = fpu if c.fpu_value is None else c.fpu_value
        scores = {}
        for a, p in node.prior.items():
            child = node.children.get(a)
            scores[a] = (node.sign * child.w / child.n if child else fpu) + k * p / (1 + counts[a])
        return max(scores, key=lambda a: (scores[a], -a))

    root = Node(position)
    root.n, root.w = 1, root.value
    for _ in range(simulations):
        path = [root]
        while not path[-1].decided:
            action = pick(path[-1], len(path) == 1)
            new = action not in path[-1].children
            if new:
                path[-1].children[action] = Node(path[-1].position.play(action))
            path.append(path[-1].children[action])
            if new:
                break
        for node in path:
            node.n, node.w = node.n + 1, node.w + path[-1].value
    return {a: (child.n, root.sign * child.w / child.n) for a, child in root.children.items()}


@pytest.mark.parametrize(
    "constants",
    [
        PuctConstants(proves=False),
        PuctConstants(proves=False, c_puct=2.5, c_log=3.0, c_base=10.0, fpu_reduction=0.6, root_fpu_reduction=0.0),
        PuctConstants(proves=False, fpu_value=-1.0),
    ],
)
def test_visits_and_values_are_those_of_plain_python(constants):
    positions = [Position.start(RULES), Position.start(RULES).play("c4").play("a1"), *some_positions(3, 7)]
    policy = PuctPolicy(constants)
    env = env_of(*positions)
    result = BatchSearch(lambda: BatchEnv(RULES, env.batch_size), Hash(), policy, 150).run(env, KEYS[: len(positions)])
    for row, position in enumerate(positions):
        told = reference(position, Hash(), 150, constants)
        found = {a: result.visit_counts[row, a] for a in np.flatnonzero(result.visit_counts[row])}
        assert found == {a: n for a, (n, _) in told.items()}
        for a, (_, value) in told.items():
            assert result.action_values[row, a] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("simulations", [2, 10, 400])
@pytest.mark.parametrize("leaves", [1, 4])
def test_targets_visits_and_choice_are_of_legal_actions(simulations, leaves):
    positions = some_positions(20, 9) + some_positions(20, 4)
    env = env_of(*positions)
    result = search(env, Hash(), simulations, leaves=leaves, noise_share=0.25)
    legal = env.legal_action_mask
    assert (result.visit_counts[~legal] == 0).all()
    assert (result.policy_target[~legal] == 0).all()
    assert np.allclose(result.policy_target.sum(axis=1), 1, atol=1e-5)
    assert legal[np.arange(40), result.actions].all()
    assert (np.abs(result.root_value) <= 1).all()


@pytest.mark.parametrize("leaves", [1, 3])
def test_signs_are_right_across_two_stones_and_a_swap(leaves):
    """The toy game with an exact evaluator: every winning ply is found, and the root's value has its sign."""
    for pile in range(1, 16):
        for phase in range(4):
            env = ToyEnv(1, pile)
            env._rows[:] = [pile, phase, 0, 0]
            policy = PuctPolicy(PuctConstants(leaves=leaves))
            result = BatchSearch(lambda: ToyEnv(leaves), ToyMinimax(), policy, 200).run(env, KEYS[:1])
            value = minimax(pile, phase)
            assert np.sign(result.root_value[0]) == value
            after, following, seat = play(pile, phase, 0, int(result.actions[0]))
            reached = 1 if after == 0 else minimax(after, following) * (1 if seat == 0 else -1)
            assert reached == value or value == -1
            assert int(result.actions[0]) in moves(pile, phase)


def test_leaves_under_way_leave_no_trace():
    positions = some_positions(12, 6)
    search_ = searcher(12, Hash(), 96, leaves=8)
    search_.run(env_of(*positions), KEYS[:12])
    nodes = search_._tree.nodes
    assert (nodes.virtual == 0).all()
    for b in range(12):
        used = nodes.num_nodes[b]
        for node in range(used):
            children = [c for c in nodes.child[b, node] if c >= 0] if not nodes.terminal[b, node] else []
            if children:
                assert nodes.visits[b, node] == 1 + nodes.visits[b, children].sum()
                assert nodes.value_sum[b, node] == pytest.approx(
                    nodes.raw_value[b, node] + nodes.value_sum[b, children].sum(), abs=1e-9
                )


def test_one_leaf_at_a_time_is_no_different_for_its_neighbours():
    positions = some_positions(9, 5)
    together = search(env_of(*positions), Hash(), 60, leaves=4)
    for row, position in enumerate(positions):
        alone = searcher(1, Hash(), 60, leaves=4).run(env_of(position), KEYS[row : row + 1])
        assert alone.visit_counts[0].tolist() == together.visit_counts[row].tolist()
        assert alone.actions[0] == together.actions[row]


def test_leaves_side_by_side_search_nearly_as_one_after_the_other():
    positions = some_positions(30, 8)
    one = search(env_of(*positions), Hash(), 400)
    many = search(env_of(*positions), Hash(), 400, leaves=8)
    assert np.abs(one.root_value - many.root_value).mean() < 0.1
    assert (one.actions == many.actions).mean() > 0.4


def test_a_won_game_is_won_and_a_lost_move_avoided():
    """With an evaluator that knows nothing, decided games show: the solver agrees with all that is called decided."""
    solver = Solver(RULES)
    positions = some_positions(60, 14, seed=3)
    result = search(env_of(*positions), UniformEvaluator(), 3000)
    values = [solver.solve(p) for p in positions]
    decided = 0
    for row, (position, solution) in enumerate(zip(positions, values, strict=True)):
        if result.root_value[row] == 1:
            decided += 1
            assert solution.value == 1
            assert result.actions[row] in solution.winning
            assert result.policy_target[row, result.actions[row]] == 1
        if solution.value == 1:
            assert result.actions[row] in solution.winning, position.text()
    assert decided > 10


def test_what_is_proven_agrees_with_the_solver_everywhere_in_the_tree():
    solver = Solver(RULES)
    positions = some_positions(10, 13, seed=9)
    search_ = searcher(10, Hash(), 500)
    search_.run(env_of(*positions), KEYS[:10])
    nodes, states, checked = search_._tree.nodes, search_._tree.states, 0
    for b in range(10):
        for node in range(1, nodes.num_nodes[b]):
            env = BatchEnv(RULES, 1)
            env.scatter(None, states[b, node][None])
            if nodes.terminal[b, node] and not env.terminated[0]:
                sign = 1 if env.to_play[0] == 0 else -1
                assert solver.value(states[b, node]) * sign == nodes.raw_value[b, node]
                assert nodes.value_sum[b, node] == pytest.approx(nodes.raw_value[b, node] * nodes.visits[b, node])
                checked += 1
    assert checked > 20


def test_a_tree_is_kept_through_a_second_stone_a_swap_and_a_reply():
    position = Position.start(RULES)
    search_ = searcher(1, Hash(), 200, reuse=True)
    fresh = searcher(1, Hash(), 200)
    for move in ("c4", "b1", "swap", "a1", "d3"):
        env = env_of(position)
        search_.run(env, KEYS[:1])
        after = position.play(move)
        child = int(search_._tree.nodes.child[0, 0, position.rules.board.cell(move) if move != "swap" else 19])
        known = int(search_._tree.nodes.visits[0, child]) if child >= 0 else 0
        position = after
        kept = search_.run(env_of(position), KEYS[:1])
        assert kept.visit_counts.sum() == max(known - 1, 0) + 200
        assert np.array_equal(search_._tree.states[0, 0], encode_position(position))
        again = fresh.run(env_of(position), KEYS[:1])
        assert kept.root_value[0] == pytest.approx(again.root_value[0], abs=0.25)


def test_a_kept_tree_holds_together():
    positions = some_positions(8, 5)
    search_ = searcher(8, Hash(), 120, reuse=True, leaves=4)
    env = env_of(*positions)
    for _ in range(4):
        result = search_.run(env, KEYS[:8])
        nodes = search_._tree.nodes
        for b in np.flatnonzero(~env.terminated):
            for node in range(1, nodes.num_nodes[b]):
                parent, action = nodes.parent[b, node], nodes.action[b, node]
                assert 0 <= parent < node
                assert nodes.child[b, parent, action] == node
                step = BatchEnv(RULES, 1)
                step.scatter(None, search_._tree.states[b, parent][None])
                step.step(np.array([action]))
                assert np.array_equal(step.gather()[0], search_._tree.states[b, node])
        env.step(result.actions)


def test_the_same_position_searched_again_goes_on():
    search_ = searcher(1, Hash(), 100, reuse=True)
    env = env_of(Position.start(RULES).play("c4"))
    assert search_.run(env, KEYS[:1]).visit_counts.sum() == 100
    assert search_.run(env, KEYS[:1]).visit_counts.sum() == 200
    once = searcher(1, Hash(), 200).run(env, KEYS[:1])
    assert search_.policy.finish(search_._tree).visit_counts.tolist() == once.visit_counts.tolist()


def test_noise_is_dirichlet_over_the_legal_actions():
    prior = np.tile(np.array([0.5, 0.0, 0.3, 0.2], np.float32), (20_000, 1))
    keys = np.arange(20_000, dtype=np.uint64) * np.uint64(7919)
    mix_noise(keys, 1.0, 3.0, np.empty(1, np.uint64), prior)
    assert (prior[:, 1] == 0).all()
    assert np.allclose(prior.sum(axis=1), 1, atol=1e-4)
    noise = prior[:, [0, 2, 3]]
    # Dirichlet(1, 1, 1): mean 1/3, variance 1/18.
    assert noise.mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.01)
    assert noise.var(axis=0) == pytest.approx([1 / 18] * 3, abs=0.003)
    small = np.tile(np.array([0.5, 0.5], np.float32), (20_000, 1))
    mix_noise(keys, 1.0, 0.2, np.empty(1, np.uint64), small)
    assert small.var(axis=0) == pytest.approx([0.25 / 1.2] * 2, abs=0.005)


def test_temperature_chooses_in_proportion_to_powers_of_the_visits():
    rows = 4000
    policy = PuctPolicy(PuctConstants(lcb=0.0))
    env = env_of(*[Position.start(RULES).play("c4")] * rows)
    search_ = BatchSearch(lambda: BatchEnv(RULES, rows), Hash(), policy, 20)
    keys = np.arange(rows, dtype=np.uint64) * np.uint64(104729)
    for temperature in (1.0, 0.5):
        policy.temperature = temperature
        result = search_.run(env, keys)
        shares = result.visit_counts[0] ** (1 / temperature)
        shares = shares / shares.sum()
        drawn = np.bincount(result.actions, minlength=21) / rows
        assert drawn == pytest.approx(shares, abs=0.035)
    policy.temperature = np.where(np.arange(rows) % 2, 1.0, 0.0)
    result = search_.run(env, keys)
    assert len(set(result.actions[::2])) == 1
    assert len(set(result.actions[1::2])) > 3


def test_with_a_lower_bound_few_lucky_visits_do_not_win():
    positions = some_positions(40, 6)
    result = search(env_of(*positions), Hash(), 100, lcb=2.0)
    most = result.visit_counts.max(axis=1)
    chosen = result.visit_counts[np.arange(40), result.actions]
    assert (chosen >= 0.15 * most).all()
    plain = search(env_of(*positions), Hash(), 100, lcb=0.0)
    assert (plain.visit_counts[np.arange(40), plain.actions] == most)[plain.root_value < 1].all()


def test_leaves_must_be_shared_out_evenly():
    with pytest.raises(ConfigError, match="cannot be shared out"):
        BatchSearch(lambda: BatchEnv(RULES, 9), Hash(), PuctPolicy(PuctConstants(leaves=4)), 20)


def test_a_single_legal_action_is_searched_and_played():
    rows = [p for s in range(40) for p in some_positions(8, 17, seed=50 + s) if len(p.legal_actions()) == 1][:5]
    assert rows
    env = env_of(*rows)
    result = search(env, Hash(), 30)
    assert result.actions.tolist() == [p.legal_actions()[0] for p in rows]
    assert np.allclose(result.policy_target.max(axis=1), 1)


def test_a_solver_at_the_leaves_finds_more_and_nothing_false():
    solver = Solver(RULES)
    positions = some_positions(60, 10, seed=21)
    env, values = env_of(*positions), [solver.solve(p) for p in positions]
    policy = PuctPolicy()
    plain = search(env, Hash(), 24)
    proved = BatchSearch(lambda: BatchEnv(RULES, 60), Hash(), policy, 24, prover=SolverProver(RULES)).run(
        env, KEYS[:60]
    )
    for row, solution in enumerate(values):
        if abs(proved.root_value[row]) == 1:
            assert proved.root_value[row] == solution.value
        if proved.root_value[row] == 1:
            assert proved.actions[row] in solution.winning
    assert (proved.root_value == 1).sum() > (plain.root_value == 1).sum() + 5
