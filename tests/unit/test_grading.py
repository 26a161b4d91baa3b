"""Graded positions: as many as there should be, distinct, true."""

import gzip

import numpy as np
import pytest

from lifeline import LifelineError, Rules
from lifeline.play.engine import Engine, EngineSettings
from lifeline.search.evaluator import UniformEvaluator
from lifeline.solver import Solver
from training import grading
from training.grading import Grades, canonical_text, grade, graded, opening_winners, swaps_right
from training.instruments import truths

COUNTS = {3: (3000, 2), 4: (1000, 14)}


@pytest.mark.parametrize("base", COUNTS)
def test_there_are_enough_of_both_outcomes_all_different_under_symmetry(base):
    count, from_turn = COUNTS[base]
    positions = graded(base)
    assert len(positions.positions) == count
    assert positions.won.sum() == count // 2
    assert all(p.turn >= from_turn and not p.is_over for p in positions.positions)
    assert len({canonical_text(p) for p in positions.positions}) == count
    assert not (positions.winning & ~positions.games().legal_action_mask).any()


@pytest.mark.parametrize(("base", "every"), [(3, 60), (4, 100)])
def test_a_sample_is_solved_anew(base, every):
    positions, solver = graded(base), Solver(Rules(base))
    late = sorted(range(len(positions.positions)), key=lambda i: -positions.positions[i].turn)
    for i in late[: len(late) // 2 : every]:
        solution = solver.solve(positions.positions[i])
        assert list(solution.winning) == np.flatnonzero(positions.winning[i]).tolist()


@pytest.mark.slow
def test_all_of_base_3_are_solved_anew():
    positions, solver = graded(3), Solver(Rules(3))
    for position, winning in zip(positions.positions, positions.winning, strict=True):
        assert list(solver.solve(position).winning) == np.flatnonzero(winning).tolist()


def test_bases_without_positions_and_damaged_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(LifelineError, match="no graded positions of base 5"):
        graded(5)
    monkeypatch.setattr(grading, "FOLDER", tmp_path)
    (tmp_path / "graded-base5.jsonl.gz").write_bytes(gzip.compress(b'{"position": "5/6 b", "winning": []}\n'))
    with pytest.raises(LifelineError, match="line 1"):
        graded(5)


class Knows:
    """Says of graded positions, and of their winning moves, what is true; of others, nothing."""

    def __init__(self, positions, wrong=0):
        states = positions.games().gather()
        self._known = {
            s.tobytes(): (w, won) for s, w, won in zip(states, positions.winning, positions.won, strict=True)
        }
        for state in [s.tobytes() for s in states][:wrong]:
            winning, won = self._known[state]
            self._known[state] = (~winning, not won)

    def evaluate(self, leaves):
        nothing = (np.zeros(leaves.num_actions), 0.5)
        found = [self._known.get(s.tobytes(), nothing) for s in leaves.gather()]
        return np.array([5.0 * w for w, _ in found], np.float32), np.array([2 * w - 1 for _, w in found], np.float32)


def test_who_knows_all_keeps_all_wins_and_who_is_wrong_loses_as_many():
    positions = graded(3).sample(200)
    grades = grade(Knows(positions), positions)
    assert grades.keeps_win.all()
    assert grades.right_sign.all()
    assert grades.calibration_error == 0
    wrong = grade(Knows(positions, wrong=40), positions)
    assert (~wrong.right_sign).sum() == 40
    # In a position that every move wins, the wrong move is any: it wins as well.
    lost = positions.won[:40] & ~(positions.winning | ~positions.games().legal_action_mask).all(axis=1)[:40]
    assert (~wrong.keeps_win).sum() == lost.sum() > 5


def test_search_grades_by_its_own_moves_and_values():
    positions = graded(3).sample(60)
    assert (
        grade(UniformEvaluator(), positions, 64).keeps_win.mean()
        > grade(UniformEvaluator(), positions).keeps_win.mean()
    )


def test_calibration_is_how_far_chances_are_from_what_comes_true():
    won = np.arange(100) < 70
    grades = Grades(won, won, np.full(100, 0.4, np.float32))  # says 70 %, and 70 % are won
    assert grades.calibration_error == pytest.approx(0, abs=1e-6)
    assert Grades(won, won, np.ones(100, np.float32)).calibration_error == pytest.approx(0.3)
    half = np.where(np.arange(100) < 50, 1, -1).astype(np.float32)  # says won of 50, lost of 50 of which 20 are won
    assert Grades(won, won, half).calibration_error == pytest.approx(0.2)


class Swaps:
    """Would always swap."""

    def evaluate(self, leaves):
        logits = np.zeros((leaves.batch_size, leaves.num_actions), np.float32)
        logits[:, leaves.rules.swap_action] = 9
        return logits, np.zeros(leaves.batch_size, np.float32)


def test_swaps_are_judged_by_who_wins():
    winners = opening_winners(3)
    assert len(winners) == 129
    assert swaps_right(Swaps(), 3).sum() == list(winners.values()).count("b") == 96
    assert swaps_right(UniformEvaluator(), 3).sum() == 33  # of equal moves the first: never the swap
    assert opening_winners(4) == {}


@pytest.mark.slow
def test_who_wins_after_each_first_turn_is_solved_anew():
    assert Solver(Rules(3)).solve_first_turns().winners == opening_winners(3)


def test_truths_are_told_of_every_size_there_are_positions_of():
    found = truths(UniformEvaluator(), [Rules(3), Rules(4), Rules(5), Rules(3, "weak_pie")], 4)
    assert {name.split("/")[0] for name in found} == {"base3", "base4"}
    assert found["base3/swaps_right_4"] < 0.5
    assert found["base4/sign_won_raw"] == 0  # a value of 0 is not above 0
    assert found["base4/sign_lost_raw"] == 1
    assert all(0 <= value <= 1 for value in found.values())


def test_the_engine_is_graded_as_players_meet_it():
    positions = graded(3).sample(30)
    grades = grade(UniformEvaluator(), positions, 24, "engine")
    engine = Engine(positions.rules, UniformEvaluator(), EngineSettings(24))
    best = [engine.choose(position, 0).action for position in positions.positions]
    assert (positions.winning[np.arange(len(best)), best] == grades.kept).all()
