"""The README tells the truth: its code runs, its tree is the one on disk."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_its_code_runs(capsys):
    code = "\n".join(blocks("python"))
    assert len(blocks("python")) == 2
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "wins after" in out
    assert "(256, " in out


def test_its_board_is_drawn_by_the_code():
    from lifeline import Position, Rules
    from lifeline.render import board_text

    position = Position.start(Rules(5))
    for move in ("c4,g3", "d6,f2", "e5", "e3", "d3", "c6", "f5"):
        position = position.play(move)
    drawn = board_text(position, last=position.rules.board.cell("f5"))
    assert drawn in blocks("text")[0]


def test_its_tree_is_on_the_disk():
    folder, listed = "", set()
    for line in blocks("text")[1].splitlines():
        name = line.split()[0]
        path = name if not line.startswith(" ") else folder + name
        folder = name if not line.startswith(" ") else folder
        assert (ROOT / path).exists(), path
        assert (ROOT / path).is_dir() == path.endswith("/"), path
        listed.add(path)
    for package in ("lifeline", "training"):
        on_disk = {f"{package}/{p.name}" for p in (ROOT / package).glob("*.py")}
        missing = (
            on_disk
            - listed
            - {f"{package}/__init__.py", "lifeline/version.py", "lifeline/errors.py", "lifeline/files.py"}
        )
        assert not missing


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
