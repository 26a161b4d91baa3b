"""The code in the documents runs, and prints what they say."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(("number", "printed"), [(0, r"seat_[01] is paid -?1\.0\n"), (1, r"has won after \d+ turns")])
def test_the_examples_of_the_adapters_run(number, printed, capsys):
    exec(compile(blocks("adapters.md")[number], "docs/adapters.md", "exec"), {})
    assert re.search(printed, capsys.readouterr().out)
