"""Ratings: known strengths come back, intervals cover them, pairs are analysed as pairs."""

import numpy as np
import pytest
from scipy.special import expit

from training.ratings import ELO, Pair, fit_ratings


def simulate(strengths, pairs_each, rng, first_seat=0.0, opening_sd=0.0):
    """Round robin of players with known Elo; an opening helps seat 0 by a random amount, the same in both games."""
    names, out = list(strengths), []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            for _ in range(pairs_each):
                opening = first_seat + opening_sd * rng.standard_normal()
                results = []
                for seat in (True, False):
                    edge = strengths[a] - strengths[b] + (opening if seat else -opening)
                    results.append((seat, bool(rng.random() < expit(ELO * edge))))
                out.append(Pair(a, b, tuple(results)))
    return out


def test_known_strengths_and_the_first_seat_come_back():
    strengths = {"random": 0.0, "weak": 150.0, "strong": 400.0}
    pairs = simulate(strengths, 1500, np.random.default_rng(0), first_seat=60)
    fit = fit_ratings(pairs, "random", np.random.default_rng(1), resamples=20)
    for name, elo in strengths.items():
        assert fit.players[name].elo == pytest.approx(elo, abs=25)
    assert fit.first_seat == pytest.approx(60, abs=15)
    assert fit.players["weak"].games == 2 * 2 * 1500


def coverage(trials, opening_sd):
    strengths = {"random": 0.0, "a": 100.0, "b": 250.0}
    inside = total = 0
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        fit = fit_ratings(simulate(strengths, 80, rng, 40, opening_sd), "random", rng, resamples=200)
        for name in ("a", "b"):
            inside += fit.players[name].low <= strengths[name] <= fit.players[name].high
            total += 1
    return inside / total


@pytest.mark.slow
@pytest.mark.parametrize("opening_sd", [0, 300])
def test_intervals_cover_the_truth_in_95_of_100_trials(opening_sd):
    """Openings that decide games make the two games of a pair hang together; the logistic fit flattens a little."""
    if opening_sd:
        assert coverage_of_difference(400, opening_sd) == pytest.approx(0.95, abs=0.02)
    else:
        assert coverage(400, opening_sd) == pytest.approx(0.95, abs=0.02)


def coverage_of_difference(trials, opening_sd):
    """Equal players: their difference is 0 whatever openings do."""
    inside = 0
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        pairs = simulate({"random": 0.0, "a": 0.0}, 150, rng, 0, opening_sd)
        rating = fit_ratings(pairs, "random", rng, resamples=200).players["a"]
        inside += rating.low <= 0 <= rating.high
    return inside / trials


def test_a_player_that_won_every_game_is_finite_and_uncertain():
    pairs = [Pair("bot", "random", ((True, True), (False, True)))] * 100
    rating = fit_ratings(pairs, "random", np.random.default_rng(0), resamples=20).players["bot"]
    assert 600 < rating.elo < 3000
    assert rating.low < rating.elo - 100
    assert np.isfinite([rating.low, rating.high]).all()


def test_identical_players_come_out_equal():
    rng = np.random.default_rng(3)
    pairs = simulate({"random": 0.0, "x": 300.0, "y": 300.0}, 200, rng)
    fit = fit_ratings(pairs, "random", rng, resamples=100).players
    assert fit["x"].low < fit["y"].elo < fit["x"].high


def test_pairs_decided_by_their_opening_say_that_players_are_equal():
    """Each opening is won by the same seat both times: 100 games, but every pair is a draw."""
    pairs = [Pair("x", "random", ((True, True), (False, False))), Pair("x", "random", ((True, False), (False, True)))]
    rating = fit_ratings(pairs * 25, "random", np.random.default_rng(0)).players["x"]
    assert abs(rating.elo) < 1
    assert 5 < rating.high < 50  # 100 games taken one by one would give 68
    assert 5 < -rating.low < 50
