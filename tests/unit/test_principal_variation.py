"""What a search tells beyond its result: the line it expects, the priors of its roots; and how it is ended early."""

import numpy as np

from gtp_talk import Hash
from lifeline import BatchEnv, Position, Rules
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.search import BatchSearch

KEYS = np.arange(1, 3, dtype=np.uint64)


def search_of(rules, simulations, batch=1):
    policy = GumbelPolicy(GumbelConstants(noise=0.0))
    return BatchSearch(lambda: BatchEnv(rules, batch), Hash(), policy, simulations)


def env_of(*positions):
    env = BatchEnv(positions[0].rules, len(positions))
    env.reset(positions=list(positions))
    return env


def test_the_line_goes_on_by_the_most_visited_move():
    start = Position.start(Rules(3))
    env = env_of(start, start.play("c3").play("a1"))
    search = search_of(start.rules, 300, batch=2)
    result = search.run(env, KEYS)
    tree = search._tree.nodes
    for row in range(2):
        for action in np.flatnonzero(result.visit_counts[row]).tolist():
            line = search.principal_variation(row, action)
            assert line[0] == action
            node, position = tree.child[row, 0, action], env.position(row).play(action)
            for ply in line[1:]:
                children = tree.child[row, node]
                visits = [tree.visits[row, c] if c >= 0 else 0 for c in children]
                assert visits[ply] == max(visits) > 0
                node, position = children[ply], position.play(ply)
            assert position.is_over or not (tree.child[row, node] >= 0).any()
    assert max(len(search.principal_variation(0, int(a))) for a in result.actions[:1]) > 2


def test_an_action_that_was_not_searched_is_a_line_by_itself():
    start = Position.start(Rules(4))
    search = search_of(start.rules, 4)
    result = search.run(env_of(start), KEYS[:1])
    unvisited = int(np.flatnonzero(result.visit_counts[0] == 0)[0])
    assert search.principal_variation(0, unvisited) == [unvisited]


def test_a_line_ends_with_the_game_whatever_earlier_searches_left():
    rules, rng = Rules(3), np.random.default_rng(2)
    search, ends = search_of(rules, 60), 0
    for _ in range(30):
        env = BatchEnv(rules, 1)
        env.step_random(rng.integers(8, 18, 1), rng.integers(0, 2**63, 1).astype(np.uint64))
        if env.terminated[0]:
            continue
        result = search.run(env, KEYS[:1])
        for action in np.flatnonzero(result.visit_counts[0]).tolist():
            position = env.position(0)
            for ply in search.principal_variation(0, action):
                assert not position.is_over
                position = position.play(ply)
            ends += position.is_over
    assert ends > 10


def test_the_priors_of_the_roots_are_the_evaluators():
    start = Position.start(Rules(3)).play("c3")
    env = env_of(start)
    search = search_of(start.rules, 8)
    search.run(env, KEYS[:1])
    logits = np.where(env.legal_action_mask[0], Hash().evaluate(env)[0][0], -np.inf)
    wanted = np.exp(logits - logits.max())
    assert np.allclose(search.root_prior[0], wanted / wanted.sum(), atol=1e-6)


def test_a_search_can_be_ended_early():
    start = Position.start(Rules(3))
    left = iter(range(10))
    search = search_of(start.rules, 1000)
    result = search.run(env_of(start), KEYS[:1], stop=lambda: next(left) == 9)
    assert result.visit_counts.sum() == 9
    assert start.is_legal(int(result.actions[0]))
    whole = search.run(env_of(start), KEYS[:1], stop=lambda: False)
    assert whole.visit_counts.sum() == 1000
    nothing = search.run(env_of(start), KEYS[:1], stop=lambda: True)
    assert start.is_legal(int(nothing.actions[0]))
