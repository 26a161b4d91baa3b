"""Giving a game up: by seats, after so many own plies, not where it is played on to see whether that was right."""

import numpy as np
import pytest

from lifeline import Rules
from lifeline.search.evaluator import UniformEvaluator
from training.config import SearchConfig, SelfPlayConfig
from training.resignation import Resignation
from training.selfplay import SelfPlay
from training.trajectory import pack, unpack

KEY = np.array([77], np.uint64)


class SeatZeroLoses:
    """Sees no hope for seat 0, whatever its colour."""

    def evaluate(self, leaves):
        logits, _ = UniformEvaluator().evaluate(leaves)
        return logits, np.where(leaves.to_play == 0, -0.97, 0.97).astype(np.float32)


def plays(play_on, groups=1, plies=40):
    config = SelfPlayConfig(
        batch_size=32, groups=groups, resign_below=-0.9, resign_plies=2, resign_play_on=play_on, random_opening_share=0
    )
    search = SearchConfig(num_simulations=2)
    return SelfPlay(Rules(3), config, search, SeatZeroLoses(), np.random.default_rng(0)).play(plies)


def verdicts(values, seats, **settings):
    """Whether one game is given up at each of its plies."""
    resignation = Resignation(SelfPlayConfig(**{"resign_below": -0.9, "resign_play_on": 0.0} | settings), 1)
    judged = [
        bool(resignation.judge(np.array([value], np.float32), np.array([seat], np.int8), KEY)[0])
        for value, seat in zip(values, seats, strict=True)
    ]
    return judged, resignation


@pytest.mark.parametrize(
    ("values", "seats", "ends"),
    [
        # Own plies only, whatever the other player thinks between them.
        ([-0.95, 0.95, -0.95, 0.95, -0.95], [0, 1, 0, 1, 0], 4),
        # Both stones of a first turn are own plies; a swap changes sides, not seats.
        ([-0.95, -0.95, -0.95], [1, 1, 1], 2),
        # One value above the limit, and the counting begins anew.
        ([-0.95, -0.95, -0.5, -0.95, -0.95, -0.95], [0] * 6, 5),
        # Each seat has a count of its own.
        ([-0.95, -0.95, -0.95, -0.95, -0.95], [0, 1, 0, 1, 0], 4),
        ([-0.9] * 6, [0] * 6, None),
    ],
)
def test_a_player_gives_up_after_so_many_own_plies_below_the_limit(values, seats, ends):
    judged, resignation = verdicts(values, seats)
    assert judged == [ends is not None and i >= ends for i in range(len(values))]
    assert resignation.would_resign[0] == -1


def test_nobody_resigns_by_default():
    judged, _ = verdicts([-1.0001] * 5, [0] * 5, resign_below=-1.0)
    assert not any(judged)
    assert SelfPlayConfig().resign_below == -1


def test_a_game_played_on_remembers_who_would_have_resigned_first():
    judged, resignation = verdicts([-0.95, -0.95, -0.95, -0.95], [1, 0, 1, 0], resign_plies=2, resign_play_on=1.0)
    assert not any(judged)
    assert resignation.would_resign[0] == 1
    resignation.start(np.array([0]))
    assert resignation.would_resign[0] == -1
    assert not resignation.below.any()


def test_a_share_of_games_is_played_on_by_their_keys():
    resignation = Resignation(SelfPlayConfig(resign_below=-0.5, resign_plies=1, resign_play_on=0.2), 4000)
    keys = np.random.default_rng(0).integers(0, 2**64, 4000, np.uint64)
    resigns = resignation.judge(np.full(4000, -0.9, np.float32), np.zeros(4000, np.int8), keys)
    assert 0.17 < 1 - resigns.mean() < 0.23
    assert ((resignation.would_resign == 0) == ~resigns).all()


def test_resigned_games_end_for_the_other_seat():
    games = plays(0.0)
    assert len(games) > 60
    for game in games:
        assert game.resigned == 0
        assert (game.outcome, game.would_resign) == (-1, -1)
        assert game.to_play[-1] == 0
        assert (game.to_play == 0).sum() == 2


def test_games_played_on_tell_how_often_it_would_have_been_wrong():
    games = plays(1.0)
    assert len(games) > 20
    assert {g.resigned for g in games} == {-1}
    assert {g.would_resign for g in games} == {0}
    assert {g.outcome for g in games} == {-1, 1}


def test_resigned_and_played_on_games_are_packed():
    games = plays(0.5, plies=15)
    assert {(g.resigned, g.would_resign) for g in games} == {(0, -1), (-1, 0)}
    assert [(g.resigned, g.would_resign) for g in unpack(pack(games))] == [(g.resigned, g.would_resign) for g in games]
