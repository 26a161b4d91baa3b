"""Scripts that compare and show ways to train do so to the end."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tiny_run import write_config

ROOT = Path(__file__).parents[2]


def script(name, *arguments):
    command = [sys.executable, ROOT / "scripts" / name, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT, timeout=600)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_ways_to_train_are_compared_and_their_curves_drawn(tmp_path):
    config = write_config(tmp_path, evaluation={"games": 0}, workers=0)
    arms = {"first": None, "other": ["learner.learning_rate=0.001"]}
    plan = {"config": str(config), "minutes": 0.2, "games": 4, "arms": arms}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    runs = tmp_path / "ablations"
    code, out, err = script("ablate.py", tmp_path / "plan.yaml", "--out", runs, "--seeds", 0, 1)
    assert code == 0, err
    rows = [line.split("|")[1:-1] for line in out.splitlines() if line.startswith("|")]
    assert [row[0].strip() for row in rows] == ["arm", "---", "first", "other"]
    assert [cell.strip() for cell in rows[0][-2:]] == ["Elo alone", "Elo with the solver"]
    assert all(" to " in cell for cell in rows[3][-2:])
    assert len({len(row) for row in rows}) == 1
    code, _, err = script("curves.py", runs / "first-0", runs / "other-0", "--out", tmp_path / "curves.png")
    assert code == 0, err
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"


def test_what_cannot_be_compared_or_drawn_is_told_in_one_line(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("game: {base: 3}\n")
    (tmp_path / "plan.yaml").write_text("config: configs/base3.yaml\narms: {a: [no.such=1]}\n")
    for name, arguments in (
        ("ablate.py", (tmp_path / "plan.yaml", "--out", tmp_path / "out")),
        ("curves.py", (tmp_path / "nothing", "--out", tmp_path / "curves.png")),
        ("curves.py", (tmp_path / "run", "--out", tmp_path / "curves.png")),
    ):
        code, _, err = script(name, *arguments)
        assert code == 1
        assert err.startswith(name)
        assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()
