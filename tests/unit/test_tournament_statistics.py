"""Ratings, encounters and sequential tests keep what they promise, by simulation with known strengths.

Games of a pair are made to hang together without changing how often either is won: both ride on one random number, in
some pairs as the seats see it (an opening that one seat wins: the pair is split), in others as the players see it.
"""

import math

import numpy as np
import pytest
from scipy.special import expit

from lifeline.errors import ConfigError
from training.arena import wilson_interval
from training.ratings import ELO, Pair, fit_ratings
from training.resampling import meetings
from training.sprt import Sprt, score_of
from training.standings import standings

FIVE = {"a": 0.0, "b": 80.0, "c": 150.0, "d": 250.0, "e": 400.0}
FIRST_SEAT = 40.0
WON, LOST, SPLIT = ((True, True), (False, True)), ((True, False), (False, False)), ((True, True), (False, False))


def simulate(strengths, pairs_each, rng, by_seat=0.0, by_player=0.0):
    """A round robin; shares of the pairs in which both games ride on one number."""
    names, out = list(strengths), []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            edge = strengths[a] - strengths[b]
            chances = expit(ELO * (edge + np.array([FIRST_SEAT, -FIRST_SEAT])))
            u, kind = rng.random((pairs_each, 2)), rng.random(pairs_each)
            u[:, 1] = np.where(kind < by_seat, 1 - u[:, 0], u[:, 1])
            u[:, 1] = np.where(kind >= 1 - by_player, u[:, 0], u[:, 1])
            out += [Pair(a, b, ((True, x), (False, y))) for x, y in (u < chances).tolist()]
    return out


def true_elo(edge):
    """The Elo that the expected score of a pair amounts to."""
    score = expit(ELO * (edge + np.array([FIRST_SEAT, -FIRST_SEAT]))).mean()
    return math.log(score / (1 - score)) / ELO


def coverage(trials, pairs_each, resamples=1000, strengths=FIVE, seed=0, **correlation):
    """Shares of the intervals that hold the truth: of ratings, of the first seat, of encounters; and naive ones."""
    hits = {"ratings": [], "first seat": [], "encounters": [], "naive": []}
    anchor = next(iter(strengths))
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        pairs = simulate(strengths, pairs_each, rng, **correlation)
        fit = fit_ratings(pairs, anchor, rng, resamples=resamples)
        hits["ratings"] += [
            fit.players[n].low <= elo - strengths[anchor] <= fit.players[n].high
            for n, elo in strengths.items()
            if n != anchor
        ]
        hits["first seat"].append(fit.first_seat_low <= FIRST_SEAT <= fit.first_seat_high)
        for e in standings(pairs, anchor, rng).encounters if trial % 4 == 0 else ():
            truth = true_elo(strengths[e.first] - strengths[e.second])
            hits["encounters"].append(e.low <= truth <= e.high)
            low, high = wilson_interval(e.wins, e.games)
            hits["naive"].append(low <= score_of(truth) <= high)
    return {name: np.mean(hit) for name, hit in hits.items()}


# What 120 openings decide: none; most of them for a seat; many of them for a player.
REGIMES = [{}, {"by_seat": 0.8}, {"by_player": 0.6}]


@pytest.mark.parametrize("correlation", REGIMES)
def test_intervals_hold_the_truth(correlation):
    found = coverage(60, 100, resamples=400, **correlation)
    assert 0.90 <= found["ratings"] <= 0.99  # 240 intervals, those of a trial not independent
    assert 0.85 <= found["first seat"] <= 1
    assert 0.89 <= found["encounters"] <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("correlation", REGIMES)
@pytest.mark.parametrize("pairs_each", [10, 120])
def test_intervals_hold_the_truth_in_93_to_97_of_100_tournaments(pairs_each, correlation):
    found = coverage(600, pairs_each, seed=1, **correlation)
    print(pairs_each, correlation, found)
    assert 0.93 <= found["ratings"] <= 0.97
    assert 0.92 <= found["first seat"] <= 0.98  # one interval a tournament
    # Few pairs, of results that come in steps: rather too wide than too narrow.
    assert 0.93 <= found["encounters"] <= (0.97 if pairs_each > 10 else 0.985)


def test_intervals_know_of_the_pairs():
    """Where games of a pair hang together, intervals of independent games are too wide or too narrow."""
    strengths = {"a": 0.0, "b": 50.0}
    rivals = coverage(400, 100, resamples=20, strengths=strengths, by_player=0.9)
    assert rivals["naive"] < 0.90
    assert 0.90 <= rivals["encounters"] <= 1
    fair = [coverage(200, 100, resamples=200, strengths=strengths, **c) for c in ({"by_player": 0.9}, {"by_seat": 0.9})]
    assert all(0.90 <= found["ratings"] <= 0.985 for found in fair)
    splits = standings(simulate({"a": 0.0, "b": 0.0}, 200, np.random.default_rng(0), by_seat=0.9), "a", rng())
    low, high = wilson_interval(splits.encounters[0].wins, 400)
    wide = (math.log(high / (1 - high)) - math.log(low / (1 - low))) / ELO
    assert splits.encounters[0].high - splits.encounters[0].low < 0.6 * wide


def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("correlation", REGIMES)
def test_identical_players_are_rated_equal(correlation):
    strengths = {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0}
    fits = [
        fit_ratings(simulate(strengths, 100, np.random.default_rng([7, t]), **correlation), "a", rng(), resamples=200)
        for t in range(60)
    ]
    elo = np.array([[fit.players[n].elo for n in "bcd"] for fit in fits])
    held = np.mean([[fit.players[n].low <= 0 <= fit.players[n].high for n in "bcd"] for fit in fits])
    # Four standard errors; the three differences to one anchor move together.
    assert abs(elo.mean()) < 4 * elo.mean(axis=1).std() / math.sqrt(len(fits))
    assert 0.88 <= held <= 1


def test_an_opening_that_splits_every_pair_makes_players_equal():
    pairs = [Pair("a", "b", SPLIT)] * 50 + [Pair("a", "b", ((True, False), (False, True)))] * 50
    found = standings(pairs, "a", rng())
    encounter, rating = found.encounters[0], {p.name: p.rating for p in found.players}["b"]
    assert encounter.elo == 0
    assert encounter.superiority == pytest.approx(0.5)
    assert -30 < encounter.low < 0 < encounter.high < 30  # 100 pairs without another result, not certainty
    assert abs(rating.elo) < 1e-6
    assert -30 < rating.low < 0 < rating.high < 30
    assert abs(found.first_seat) < 1e-6


@pytest.mark.parametrize("won", [WON, LOST])
def test_200_to_0_is_finite_with_a_bound_on_one_side(won):
    found = standings([Pair("bot", "random", won)] * 100, "random", rng())
    sign = 1 if won is WON else -1
    rating = {p.name: p.rating for p in found.players}["bot"]
    low, high = sorted((sign * rating.low, sign * rating.high))
    # No pair of 100 lost: up to 3.6 % may be (Clopper and Pearson), 572 Elo; if games were independent, 692.
    assert 500 < low < 800 < sign * rating.elo < high < 3000
    encounter = found.encounters[0]
    encounter = encounter if encounter.first == "bot" else encounter.reversed()
    low, high = sorted((sign * encounter.low, sign * encounter.high))
    assert 500 < low < 800 < sign * encounter.elo < high < 3000
    pairs = (encounter.pairs_lost, encounter.pairs_drawn, encounter.pairs_won)
    assert pairs == ((0, 0, 100) if sign > 0 else (100, 0, 0))
    assert (encounter.superiority > 0.999999) == (sign > 0)


def test_players_that_only_beat_a_third_share_its_uncertainty():
    """Their games with each other fix their difference; how far above it they are, nothing does."""
    pairs = [Pair("x", "random", WON)] * 100 + [Pair("y", "random", WON)] * 100
    pairs += [Pair("x", "y", kind) for kind in (WON, LOST, SPLIT) for _ in range(30)]
    above = fit_ratings(pairs, "random", rng()).players
    assert above["x"].high - above["x"].low > 400
    assert above["x"].low > 500
    beside = fit_ratings(pairs, "x", rng()).players
    assert beside["y"].high - beside["y"].low < 200
    assert beside["random"].high - beside["random"].low > 400


@pytest.mark.parametrize("pairs", [[Pair("a", "b", WON)], [Pair("a", "b", SPLIT)], [Pair("a", "b", ((True, False),))]])
def test_a_single_pair_or_game_has_a_wide_interval(pairs):
    found = standings(pairs, "a", rng())
    encounter, rating = found.encounters[0], {p.name: p.rating for p in found.players}["b"]
    for low, high in ((encounter.low, encounter.high), (rating.low, rating.high)):
        assert -6000 < low < -200 < 200 < high < 6000


def test_a_gauntlet_has_encounters_only_where_players_met():
    pairs = [Pair("hero", name, kind) for name in "abc" for kind in (WON, WON, SPLIT, LOST)]
    pairs.append(Pair("c", "hero", ((False, True),)))  # stopped after one game, won by c
    found = standings(pairs, "b", rng(), anchor_elo=1500, forfeits={"c": 2})
    assert {(e.first, e.second) for e in found.encounters} <= {("hero", n) for n in "abc"} | {
        (n, "hero") for n in "abc"
    }
    assert len(found.encounters) == 3
    by_name = {p.name: p for p in found.players}
    assert by_name["b"].rating == type(by_name["b"].rating)(1500, 1500, 1500, 8)
    assert (by_name["hero"].games, by_name["hero"].wins, by_name["hero"].forfeits) == (25, 15, 0)
    assert (by_name["c"].games, by_name["c"].wins, by_name["c"].forfeits) == (9, 4, 2)
    assert [p.rating.elo for p in found.players] == sorted((p.rating.elo for p in found.players), reverse=True)
    to_c = next(e for e in found.encounters if "c" in (e.first, e.second))
    assert to_c.pairs_lost + to_c.pairs_drawn + to_c.pairs_won == 4
    assert to_c.games == 9


def test_pairs_count_the_same_whoever_is_named_first_and_whichever_game_comes_first():
    told = [Pair("a", "b", ((True, True), (False, False))), Pair("b", "a", ((False, False), (True, True)))]
    one, two = (meetings([pair])[0] for pair in told)
    assert one.totals.tolist() == [1, 1, 1, 1]
    assert two.totals.tolist() == [1, 1, 1, 1]
    assert one.counts.tolist() == two.counts.tolist()


@pytest.mark.parametrize("anchor", ["nobody", ""])
def test_an_anchor_that_did_not_play_is_refused(anchor):
    with pytest.raises(ConfigError, match=r"one of those that played \(a, b\)"):
        standings([Pair("a", "b", WON)], anchor, rng())


def test_a_tournament_without_games_is_refused():
    with pytest.raises(ConfigError, match="no one"):
        standings([], "a", rng())


def test_20_000_games_of_ten_players_are_rated_at_once():
    """A bound that only a fit of another order of cost would miss."""
    import time

    pairs = simulate({f"p{i}": 50.0 * i for i in range(10)}, 222, rng())
    began = time.perf_counter()
    fit_ratings(pairs, "p0", rng())
    assert time.perf_counter() - began < 3


# ---------------------------------------------------------------------------------------------- sequential tests


def decided(sprt, elo, split, tests, pairs, seed):
    """Shares of tests that accept elo1 and elo0 where the truth is `elo` and so many pairs are split."""
    chances = np.array([1 - score_of(elo) - split / 2, split, score_of(elo) - split / 2])
    drawn = np.random.default_rng(seed).choice(3, (tests, pairs), p=chances)
    llr = sprt.ratios(np.cumsum(drawn[:, :, None] == np.arange(3), axis=1).astype(float))
    never = np.ones((tests, 1), bool)
    up = np.argmax(np.concatenate([llr >= sprt.upper, never], axis=1), axis=1)
    down = np.argmax(np.concatenate([llr <= sprt.lower, never], axis=1), axis=1)
    return np.mean(up < down), np.mean(down < up)


def check_error_rates(elo0, elo1, split, tests, pairs, alpha=0.05, beta=0.05):
    sprt = Sprt(elo0, elo1, alpha, beta)
    false_positive = decided(sprt, elo0, split, tests, pairs, 1)
    false_negative = decided(sprt, elo1, split, tests, pairs, 2)
    print(elo0, elo1, split, false_positive, false_negative)
    for wrong, right, nominal in (
        (false_positive[0], false_positive[1], alpha),
        (false_negative[1], false_negative[0], beta),
    ):
        assert wrong <= nominal + 2.5 * math.sqrt(nominal / tests)
        assert wrong + right > 0.95  # most were decided


@pytest.mark.parametrize(("elo0", "elo1", "split"), [(0, 100, 0.3), (0, 100, 0.6), (-50, 50, 0.8), (0, 50, 0.8)])
def test_a_sequential_test_errs_no_more_often_than_it_says(elo0, elo1, split):
    check_error_rates(elo0, elo1, split, 1500, 400)


@pytest.mark.slow
@pytest.mark.parametrize("split", [0.3, 0.5, 0.7, 0.85])
@pytest.mark.parametrize(("elo0", "elo1", "pairs"), [(0, 30, 2000), (0, 50, 800), (-25, 25, 800), (50, 100, 800)])
def test_a_sequential_test_errs_no_more_often_than_it_says_in_8_000_tests(elo0, elo1, pairs, split):
    if max(abs(score_of(elo0) - 0.5), abs(score_of(elo1) - 0.5)) < (1 - split) / 2:
        check_error_rates(elo0, elo1, split, 8000, pairs)


@pytest.mark.parametrize(("alpha", "beta"), [(0.01, 0.2), (0.2, 0.01)])
def test_both_errors_are_kept_apart(alpha, beta):
    check_error_rates(0, 80, 0.5, 1500, 500, alpha, beta)


def test_a_known_ratio_comes_out():
    """Without splits and with elo0 = 0 the ratio is that of a coin's two biases, but for the pairs added."""
    state = Sprt(0, 100).state(4000, 0, 6000)
    score = score_of(100)
    assert state.llr == pytest.approx(4000 * math.log((1 - score) / 0.5) + 6000 * math.log(score / 0.5), rel=2e-3)
    assert state.pairs == 10_000
    assert (state.lower, state.upper) == pytest.approx((-2.944439, 2.944439))


def test_the_test_is_the_same_seen_from_the_other_player():
    one, other = Sprt(-30, 60).state(40, 100, 60), Sprt(-60, 30).state(60, 100, 40)
    assert one.llr == pytest.approx(-other.llr)


@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, 0), (0, 0, 1), (0, 500, 0), (0, 0, 100_000), (100_000, 0, 1)])
@pytest.mark.parametrize("sprt", [Sprt(0, 5), Sprt(-1000, 1000), Sprt(0, 0.1), Sprt(999, 1000)])
def test_zero_counts_leave_the_ratio_finite(sprt, counts):
    assert math.isfinite(sprt.state(*counts).llr)


def test_200_to_0_accepts_the_higher_hypothesis_and_0_to_200_the_lower():
    assert Sprt(0, 50).state(0, 0, 100).verdict == "elo1 accepted"
    assert Sprt(0, 50).state(100, 0, 0).verdict == "elo0 accepted"
    assert Sprt(0, 50).state(0, 0, 0).verdict == "undecided"


def test_the_verdict_does_not_depend_on_how_many_results_come_at_once():
    results = np.random.default_rng(5).choice([0.0, 0.5, 1.0], 600, p=[0.15, 0.5, 0.35]).tolist()
    sprt = Sprt(0, 60)
    pairs, state = sprt.first_crossing(results)
    assert pairs < 600
    assert state.verdict == "elo1 accepted"
    for seen in range(0, 600, 7):
        expected = (pairs, state) if seen >= pairs else (seen, sprt.first_crossing(results[:seen])[1])
        assert sprt.first_crossing(results[:seen]) == expected
        assert seen >= pairs or expected[1].verdict == "undecided"
    counts = [results[:pairs].count(x) for x in (0, 0.5, 1)]
    assert sprt.state(*counts).llr == pytest.approx(state.llr)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((50, 0), "elo1 must be at least 0.1 above elo0"),
        ((10, 10), "elo1 must be at least 0.1 above elo0"),
        ((float("nan"), 10), "elo0 must be from -1000 to 1000, not nan"),
        ((0, 5000), "elo1 must be from -1000 to 1000"),
        ((0, 10, 0.0), "alpha must be from 0.0001 to 0.4999"),
        ((0, 10, 0.05, 0.5), "beta must be from 0.0001 to 0.4999"),
        ((0, 10, float("nan")), "alpha"),
    ],
)
def test_absurd_tests_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Sprt(*values)


@pytest.mark.parametrize("results", [[0.25], [1, 2], [float("nan")]])
def test_a_result_that_is_none_is_refused(results):
    with pytest.raises(ConfigError, match=r"0, 0\.5 or 1"):
        Sprt(0, 10).first_crossing(results)
