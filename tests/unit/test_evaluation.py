"""Ratings over a run: who meets whom, and a book of games that a kill leaves readable."""

from pathlib import Path

import numpy as np
import pytest

from lifeline import CheckpointError, Rules
from lifeline.play.openings import most_even, random_openings
from tiny_run import TINY
from training.config import build_config
from training.evaluation import RatingBook, Schedule, play_job, rate
from training.export import export_onnx
from training.network import Network
from training.ratings import Pair

PAIRS = [Pair("a", "random", ((True, True), (False, False))), Pair("b", "a", ((True, True), (False, True)))]


def test_the_book_is_read_back_as_it_was_written(tmp_path):
    book = RatingBook(tmp_path / "ratings.jsonl")
    book.add(PAIRS[:1])
    book.add(PAIRS[1:])
    assert RatingBook(tmp_path / "ratings.jsonl").pairs == PAIRS


def test_a_run_that_goes_on_knows_its_ratings(tmp_path):
    assert rate([], 0) is None
    ratings = rate(PAIRS, 0)
    assert set(ratings.players) == {"a", "b", "random"}
    assert ratings.players["b"].elo > ratings.players["a"].elo


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_a_kill_cut_off_is_written_over(tmp_path, cut):
    path = tmp_path / "ratings.jsonl"
    RatingBook(path).add(PAIRS)
    path.write_bytes(path.read_bytes()[:-cut])
    book = RatingBook(path)
    assert book.pairs == PAIRS[:1]
    book.add(PAIRS[1:])
    assert RatingBook(path).pairs == PAIRS


def test_damage_before_the_last_line_is_named(tmp_path):
    path = tmp_path / "ratings.jsonl"
    RatingBook(path).add(PAIRS)
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(CheckpointError, match="line 1"):
        RatingBook(path)


def names(schedule):
    out = []
    while (job := schedule.next(0, [])) is not None:
        out.append((job.first.name, job.second.name, job.first.model))
    return out


def test_the_newest_meets_the_one_before_one_half_as_old_and_the_baselines(tmp_path, monkeypatch):
    monkeypatch.setattr("training.evaluation.load_model", Path)  # who meets whom does not hang on what is in the files
    schedule = Schedule(build_config(TINY, "test"), tmp_path)
    assert schedule.is_due(0)
    for iteration in (10, 20, 30, 40):
        schedule.enter(iteration, str(iteration).encode(), float(iteration))
    met = names(schedule)
    assert [pair[1] for pair in met] == ["rollout:10", "iteration-00000030", "iteration-00000020", "random"]
    assert all(pair[0] == "iteration-00000040" and pair[2] == b"40" for pair in met)
    assert not schedule.is_due(45)
    assert schedule.is_due(75)
    again = Schedule(build_config(TINY, "test"), tmp_path)
    again.enter(50, b"50", 100.0)
    assert [pair[1] for pair in names(again)][:3] == ["random", "iteration-00000040", "iteration-00000030"]
    assert again.entered["iteration-00000010"] == 10


def test_a_run_goes_on_without_rating_models_it_cannot_use(tmp_path, caplog):
    schedule = Schedule(build_config(TINY, "test"), tmp_path)
    for iteration in (10, 20):
        schedule.enter(iteration, b"of an older version", float(iteration))
    again = Schedule(build_config(TINY, "test"), tmp_path)
    assert [r.message.split()[0] for r in caplog.records] == [
        str(tmp_path / f"iteration-000000{n}.onnx") for n in (10, 20)
    ]
    assert all(r.message.endswith("; it plays no more rating games") for r in caplog.records)
    again.enter(30, b"30", 30.0)
    assert [pair[1] for pair in names(again)] == ["random", "rollout:10"]
    assert list(again.entered) == ["iteration-00000010", "iteration-00000020", "iteration-00000030"]


def test_models_enter_ever_more_seldom(tmp_path):
    schedule = Schedule(build_config(TINY, "test"), tmp_path)
    entered = 0
    for second in range(0, 24 * 3600, 30):
        if schedule.is_due(second):
            schedule.enter(second, b"", float(second))
            entered += 1
    assert entered < 60


def test_the_most_even_openings_are_taken():
    class Tells:
        def evaluate(self, leaves):
            return np.zeros((leaves.batch_size, leaves.num_actions)), np.array([0.9, -0.2, 0.5, 0.1, -0.8], np.float32)

    positions = random_openings(Rules(3), 5, np.random.default_rng(0), turns=2)
    assert most_even(positions, Tells(), 3) == [positions[3], positions[1], positions[2]]


def test_each_new_model_is_judged_by_the_solver_once(tmp_path):
    config = build_config({**TINY, "evaluation": {"num_simulations": 2, "pairs": 1, "opponents": ["random"]}}, "test")
    weights = Network(config.network).state_dict()
    schedule = Schedule(config, tmp_path)
    jobs = []
    for iteration in (1, 2, 3):
        schedule.enter(iteration, export_onnx(config.network, weights), 0.0)
        while (job := schedule.next(0, [])) is not None:
            jobs.append((job.first.name, job.inspect, job))
    assert [name for name, inspect, _ in jobs if inspect] == sorted({name for name, _, _ in jobs})
    assert len(jobs) > 3
    told = play_job(next(job for _, inspect, job in jobs if inspect), config).truths
    assert 0 < told["base3/keeps_win_raw"] < 1
    assert play_job(next(job for _, inspect, job in jobs if not inspect), config).truths == {}
