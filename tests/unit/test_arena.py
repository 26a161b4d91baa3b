"""Matches: paired, varied, honest intervals."""

import numpy as np
import pytest

from lifeline import ConfigError, IllegalMoveError, Position, Rules
from lifeline.play.openings import Opening, random_openings
from lifeline.play.players import RandomPlayer, RolloutPlayer, choose_move, make_player
from training.arena import paired, play_games, play_match, wilson_interval

RULES = Rules(3)


@pytest.mark.parametrize("turns", [1, 2])
def test_openings_are_distinct_and_past_the_first_turns(turns):
    openings = random_openings(RULES, 100, np.random.default_rng(0), turns)
    assert len({o.position.text() for o in openings}) == 100
    positions = [o.position for o in openings]
    assert all(p.turn == turns and not p.swapped and p.may_swap == (turns == 1) for p in positions)
    assert all(Opening.of(RULES, o.actions) == o for o in openings)


def test_openings_repeat_when_there_are_no_more():
    openings = random_openings(RULES, 300, np.random.default_rng(0))
    assert len(openings) == 300
    assert len({o.position.text() for o in openings}) == 129


def test_openings_longer_than_games_are_refused():
    with pytest.raises(ConfigError, match="none has lasted for 60 turns"):
        random_openings(RULES, 3, np.random.default_rng(0), turns=60)


def test_times_are_kept_of_a_game_that_is_played_by_itself():
    fixtures = paired(random_openings(RULES, 2, np.random.default_rng(0)), np.random.default_rng(0))
    alone = play_games(RandomPlayer(), RandomPlayer(), fixtures[:1])
    together = play_games(RandomPlayer(), RandomPlayer(), fixtures)
    assert all(seconds is not None for seconds in alone[0].seconds)
    assert all(seconds is None for game in together for seconds in game.seconds)
    assert alone[0].actions == together[0].actions


def test_a_player_against_itself_is_even_and_games_differ():
    openings = random_openings(RULES, 150, np.random.default_rng(0))
    result = play_match(RandomPlayer(), RandomPlayer(), openings, np.random.default_rng(1))
    assert result.games == 300
    assert result.low < 0.5 < result.high
    assert result.distinct_games > 290


def test_the_stronger_player_wins_from_either_seat_and_either_side_of_the_match():
    openings = random_openings(RULES, 20, np.random.default_rng(0))
    strong = RolloutPlayer(RULES, 300, threads=2)
    ahead = play_match(strong, RandomPlayer(), openings, np.random.default_rng(1))
    behind = play_match(RandomPlayer(), strong, openings, np.random.default_rng(1))
    assert ahead.wins > 34
    assert behind.wins < 6
    assert "rollout:300 against random" in ahead.line()


def test_intervals_are_wilsons():
    assert wilson_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson_interval(200, 200) == pytest.approx((0.9812, 1.0), abs=1e-4)
    assert wilson_interval(0, 200) == pytest.approx((0.0, 0.0188), abs=1e-4)


@pytest.mark.parametrize(
    "text", ["", "nobody", "rollout:", "rollout:0", "rollout:-5", "rollout:99999999", "rollout:1e3"]
)
def test_unknown_players_are_refused(text):
    with pytest.raises(ConfigError, match="no player"):
        make_player(text, RULES)


def test_a_finished_game_has_no_move():
    over = Position.parse("3/4/5/4/3 b 8 0 - 0", RULES)
    with pytest.raises(IllegalMoveError, match="over"):
        choose_move(RandomPlayer(), over, seed=0)
