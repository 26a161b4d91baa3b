"""Gumbel search: its schedule, its formulas, its signs."""

import numpy as np
import pytest

from lifeline import BatchEnv, ConfigError, LifelineError, Position, Rules
from lifeline.search.evaluator import UniformEvaluator
from lifeline.search.gumbel import GumbelConstants, GumbelPolicy, visit_schedule
from lifeline.search.search import BatchSearch
from toy_game import ToyEnv, ToyMinimax, minimax, moves, play

KEYS = np.arange(1, 1000, dtype=np.uint64)


class Constant:
    """Says the same value, for the player to move, of every position."""

    def __init__(self, value):
        self.value = value

    def evaluate(self, leaves):
        priors, values = UniformEvaluator().evaluate(leaves)
        return priors, values + np.float32(self.value)


def search(env, evaluator, simulations, noise=0.0, considered=16, new_env=None):
    rules, size = getattr(env, "rules", None), env.batch_size
    policy = GumbelPolicy(GumbelConstants(max_considered=considered, noise=noise))
    return BatchSearch(new_env or (lambda: BatchEnv(rules, size)), evaluator, policy, simulations).run(env, KEYS[:size])


def lifeline_env(*texts, base=3):
    rules = Rules(base)
    env = BatchEnv(rules, len(texts))
    env.reset(positions=[Position.parse(t, rules) for t in texts])
    return env


def test_schedule_halves_the_considered_actions_after_equal_shares():
    assert visit_schedule(4, 8)[4].tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
    assert visit_schedule(16, 16)[16].tolist() == [0] * 16
    assert visit_schedule(16, 32)[16].tolist() == [0] * 16 + [1] * 8 + [2] * 4 + [3] * 4


def test_schedule_of_one_action_visits_it_again_and_again():
    assert visit_schedule(16, 5)[1].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("considered", range(2, 17))
@pytest.mark.parametrize("simulations", [2, 3, 7, 16, 50])
def test_schedule_never_asks_for_a_count_no_action_has(considered, simulations):
    counts = [0] * considered
    for wanted in visit_schedule(16, simulations)[considered]:
        assert wanted in counts
        counts[counts.index(wanted)] += 1


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("3/4/5/4/3 b 0 0 - 0", 1),  # the second stone is the same player's
        ("3/4/2b2/4/3 b 0 1 - 0", -1),  # after it the other moves
        ("3/2b1/5/b3/3 w 1 0 s 0", 1),
    ],
)
def test_value_changes_sign_only_when_the_player_to_move_changes(text, sign):
    result = search(lifeline_env(text), Constant(0.5), 16)
    visited = result.action_values[0][result.visit_counts[0] > 0]
    assert np.allclose(visited, 0.5 * sign)


def test_value_changes_sign_across_a_swap():
    env = lifeline_env("3/2b1/5/b3/3 w 1 0 - 0")
    result = search(env, Constant(0.5), 64, considered=32)
    swap = env.rules.swap_action
    assert result.visit_counts[0, swap] > 0
    placements = (result.visit_counts[0] == 1) & (np.arange(env.num_actions) != swap)
    assert np.allclose(result.action_values[0][placements], 0.5)  # White's second stone is White's
    env.step(np.array([swap]))
    assert search(env, Constant(0.5), 2).root_value.shape == (1,)
    one = search(lifeline_env("3/2b1/5/b3/3 w 1 0 - 0"), Constant(0.5), 21, considered=21)
    assert one.visit_counts[0, swap] == 1
    assert one.action_values[0, swap] == pytest.approx(-0.5)


def test_improved_policy_follows_the_paper():
    """Equations 10, 11 and 33 by hand, on statistics read from the result of two simulations."""
    env = lifeline_env("3/4/2b2/4/3 b 0 1 - 0")
    result = search(env, Constant(0.5), 2)
    legal = env.legal_action_mask[0]
    visited = result.visit_counts[0] > 0
    assert visited.sum() == 2
    mixed = (0.5 + 2 * -0.5) / 3
    q = np.where(visited, -0.5, mixed)
    logits = np.where(legal, (50 + 1) * 0.2 * (q + 1) / 2, -np.inf)
    expected = np.exp(logits - logits.max())
    expected /= expected.sum()
    assert np.allclose(result.policy_target[0], expected, atol=1e-6)
    assert result.root_value[0] == pytest.approx((expected * q)[legal].sum(), abs=1e-6)


def test_all_simulations_are_counted_and_the_most_visited_are_chosen_from():
    result = search(lifeline_env("3/4/5/4/3 b 0 0 - 0"), UniformEvaluator(), 50, noise=1.0)
    assert result.visit_counts.sum() == 50
    assert result.visit_counts[0, result.actions[0]] == result.visit_counts.max()


def test_a_single_legal_action_is_searched_and_chosen():
    env = ToyEnv(1)
    env.scatter(None, np.array([[1, 3, 0, 0]]))
    result = search(env, UniformEvaluator(), 5, new_env=lambda: ToyEnv(1))
    assert result.actions[0] == 0
    assert result.root_value[0] == 1
    assert result.policy_target[0].tolist() == [1, 0, 0, 0]


def test_finished_games_are_left_alone():
    env = lifeline_env("3/4/2b2/4/3 b 0 1 - 0", "3/4/5/4/3 b 8 0 - 0")
    assert env.terminated.tolist() == [False, True]
    result = search(env, Constant(0.2), 8)
    assert result.actions[1] == -1
    assert result.root_value[1] == -1
    assert not result.policy_target[1].any()
    assert result.actions[0] >= 0


def test_noise_explores_and_none_is_deterministic():
    texts = ["3/4/5/4/3 b 0 0 - 0"] * 50
    assert len(set(search(lifeline_env(*texts), UniformEvaluator(), 16, noise=1.0).actions)) > 5
    assert len(set(search(lifeline_env(*texts), UniformEvaluator(), 16).actions)) == 1


def test_too_few_simulations_are_refused():
    with pytest.raises(ConfigError, match="num_simulations"):
        search(ToyEnv(1), UniformEvaluator(), 1, new_env=lambda: ToyEnv(1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 7.0])
def test_an_evaluator_gone_wrong_is_reported(bad):
    with pytest.raises(LifelineError, match="evaluator"):
        search(lifeline_env("3/4/5/4/3 b 0 0 - 0"), Constant(bad), 4)


@pytest.mark.parametrize("evaluator", [UniformEvaluator(), ToyMinimax()])
@pytest.mark.parametrize("phase", [0, 1, 2, 3])
def test_toy_game_is_played_perfectly_through_double_plies_and_swap(phase, evaluator):
    piles = range(1, 10)
    env = ToyEnv(len(piles))
    env.scatter(None, np.array([[pile, phase, seat := pile % 2, 0] for pile in piles]))
    result = search(env, evaluator, 1500, considered=4, new_env=lambda: ToyEnv(len(piles)))
    for row, pile in enumerate(piles):
        value = minimax(pile, phase)
        after, next_phase, seat = play(pile, phase, 0, int(result.actions[row]))
        reached = 1 if after == 0 else minimax(after, next_phase) * (1 if seat == 0 else -1)
        assert reached == value, f"pile {pile}: chose {result.actions[row]} of {moves(pile, phase)}"
        assert np.sign(result.root_value[row]) == value
