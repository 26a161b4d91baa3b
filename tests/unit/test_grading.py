"""Graded positions: as many as there should be, distinct, true."""

import gzip

import numpy as np
import pytest

from lifeline import LifelineError, Rules
from lifeline.solver import Solver
from training import grading
from training.grading import canonical_text, graded

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
