"""Where games begin: at random moments, beside earlier games, and never where models are graded."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from game_positions import mapped, play_randomly
from lifeline import BatchEnv, ConfigError, Position, Rules
from lifeline.kernels import encode_position
from lifeline.search.evaluator import UniformEvaluator
from lifeline.streams import draw_keys
from training import held_out as module
from training.config import SearchConfig, SelfPlayConfig, build_config
from training.grading import canonical_text, graded
from training.held_out import HeldOut, held_out
from training.selfplay import SelfPlay
from training.starts import Starts


def begin(starts, count, seed=0):
    env = BatchEnv(starts._rules, count)
    plies = starts.begin(env, np.arange(count), draw_keys(np.random.default_rng(seed), count))
    return env, plies


@pytest.mark.parametrize("rules", [Rules(3), Rules(4, "weak_pie"), Rules(3, "komi_pie", komi=2)])
def test_random_starts_are_running_games_of_every_stage(rules):
    config = SelfPlayConfig(random_opening_share=0, random_start_share=1)
    env, plies = begin(Starts(rules, config), 600)
    assert not env.terminated.any()
    assert plies.min() == 0
    assert plies.max() > rules.num_cells / 2
    # About equally many of each tenth of a game's usual length.
    counts, _ = np.histogram(plies, bins=5, range=(0, np.quantile(plies, 0.8)))
    assert counts.min() > 0.15 * counts.max()  # games of single stones often end early
    turns = [env.position(row).turn for row in range(600)]
    assert np.corrcoef(turns, plies)[0, 1] > 0.95


def test_a_start_hangs_on_its_key_alone():
    config = SelfPlayConfig(random_opening_share=0.3, random_start_share=0.5)
    starts = Starts(Rules(3), config)
    keys = draw_keys(np.random.default_rng(1), 40)
    together, alone = BatchEnv(Rules(3), 40), BatchEnv(Rules(3), 1)
    starts.begin(together, np.arange(40), keys)
    for row in (0, 7, 39):
        starts.begin(alone, np.zeros(1, np.int64), keys[row : row + 1])
        assert (alone.gather()[0] == together.gather()[row]).all()


def test_branches_are_one_random_move_away_from_an_earlier_game():
    starts = Starts(Rules(3), SelfPlayConfig(random_opening_share=0, branch_share=1))
    env, plies = begin(starts, 5)
    assert (plies == 0).all()  # nothing to branch off yet
    before = encode_position(Position.start(Rules(3)).play("c4,e2").play("b1,b3"))
    starts.remember(np.array([before]), 4, np.uint64(5))
    env, plies = begin(starts, 50)
    seen = set()
    for row in range(50):
        position = env.position(row)
        assert position.turn == 3
        assert plies[row] == 5
        seen.add(position.text())
    assert len(seen) > 5


def test_memory_keeps_the_newest_positions(monkeypatch):
    monkeypatch.setattr("training.starts._REMEMBERED", 8)
    starts = Starts(Rules(3), SelfPlayConfig(random_opening_share=0, branch_share=1))
    for number in range(11):
        starts.remember(np.full((1, 5), number, np.uint64), number, np.uint64(number))
    assert sorted(starts.memory[:, 0].tolist()) == list(range(3, 11))
    other = Starts(Rules(3), SelfPlayConfig(random_opening_share=0, branch_share=1))
    other.load_state(starts.state())
    assert other.count == 11
    assert (other.memory == starts.memory).all()


def test_self_play_goes_on_alike_from_its_state_with_branches():
    def selfplay(seed):
        config = SelfPlayConfig(batch_size=8, random_opening_share=0.2, random_start_share=0.2, branch_share=0.5)
        evaluator, rng = UniformEvaluator(), np.random.default_rng(seed)
        return SelfPlay(Rules(3), config, SearchConfig(num_simulations=4), evaluator, rng)

    one, other = selfplay(1), selfplay(2)
    one.play(25)
    other.load_state(one.state())
    other._rng.bit_generator.state = one._rng.bit_generator.state
    games = list(zip(one.play(40), other.play(40), strict=True))
    assert len(games) > 20
    assert any(a.random_plies > 6 for a, _ in games)
    for a, b in games:
        assert (a.actions == b.actions).all()
        assert a.random_plies == b.random_plies


def test_graded_positions_are_held_out_in_all_their_forms():
    known = held_out(Rules(3))
    positions = graded(3).positions[::50]
    board = Rules(3).board
    for position in positions:
        for symmetry in board.symmetries:
            stones = [""] * len(position.stones)
            for cell, stone in enumerate(position.stones):
                stones[symmetry[cell]] = stone
            turned = Position(
                position.rules, tuple(stones), position.turn, position.placed, position.swapped, position.komi
            )
            assert known.contains(encode_position(turned)[None])[0]


@pytest.mark.parametrize("base", [4, 5, 8])
def test_forms_by_a_symmetry_are_told_from_other_positions(base, monkeypatch):
    """On boards of one word and of several."""
    rules = Rules(base)
    position = play_randomly(Position.start(rules), rules.num_cells // 2, 5)
    monkeypatch.setattr(module, "graded", lambda base: SimpleNamespace(positions=[position]))
    monkeypatch.setattr(module, "path_of", lambda base: Path(__file__))
    known, texts = HeldOut(rules), set()
    for symmetry in range(12):
        form = mapped(position, symmetry)
        texts.add(form.text())
        assert known.contains(encode_position(form)[None])[0]
        after = [encode_position(form.play(action)) for action in form.legal_actions()]
        assert not known.contains(np.array(after)).any()
    assert len(texts) == 12


def test_games_do_not_begin_where_models_are_graded(monkeypatch):
    config = SelfPlayConfig(random_opening_share=0, random_start_share=1)
    graded_texts = {canonical_text(p).rsplit(" ", 4)[0] for p in graded(3).positions}  # stones and colour to place

    def hits():
        env, _ = begin(Starts(Rules(3), config), 1500, seed=3)
        return sum(canonical_text(env.position(r)).rsplit(" ", 4)[0] in graded_texts for r in range(1500))

    assert hits() == 0
    monkeypatch.setattr(HeldOut, "contains", lambda self, states: np.zeros(len(states), bool))
    assert hits() > 10


def test_nothing_is_held_out_of_games_by_other_rules():
    assert not held_out(Rules(5)).contains(begin(Starts(Rules(5), SelfPlayConfig()), 20)[0].gather()).any()
    assert len(HeldOut(Rules(3, "weak_pie"))._sums) == 0


def test_shares_of_more_than_all_games_are_refused():
    with pytest.raises(ConfigError, match=r"sum to 1\.1, more than all games"):
        build_config({"selfplay": {"random_start_share": 0.5, "branch_share": 0.3}}, "x")
