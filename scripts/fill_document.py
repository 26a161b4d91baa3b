"""Run the Python of a document and write under each block what it prints.

    python scripts/fill_document.py docs/tutorial.md

Blocks are run in order, as one program, in an empty folder from which this one's `checkpoints` can be reached. Where a
block of text stands behind one of Python, it becomes what that has printed. Pictures that the program writes and the
document shows from pictures/ are put there. Words of the document that speak of numbers must be read again afterwards.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from lifeline import LifelineError
from lifeline.files import write_atomic

BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)


def run(document: str, name: str) -> list[str]:
    """What each block of Python prints, all of them run as one program."""
    printed, names = [], dict[str, Any]()
    for block in BLOCK.finditer(document):
        before = document[: block.start("code")].count("\n")  # so that tracebacks name the document's lines
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * before + block["code"], name, "exec"), names)
        printed.append(out.getvalue())
    return printed


def filled(document: str, printed: list[str]) -> str:
    """The document with what has been printed in its blocks of text."""
    answers = iter(printed)

    def fill(block: re.Match[str]) -> str:
        text, answer = block[0], next(answers)
        if block["shown"] is None:
            return text
        start, end = (at - block.start() for at in block.span("shown"))
        return text[:start] + answer + text[end:]

    return BLOCK.sub(fill, document)


def main() -> None:
    """Fill each document named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=Path, nargs="+")
    home = Path.cwd()
    for path in parser.parse_args().documents:
        document = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("checkpoints").symlink_to(home / "checkpoints")
            printed = run(document, str(path))
            for picture in Path().glob("*.png"):
                if f"(pictures/{picture.name})" in document:
                    shutil.copyfile(picture, home / path.parent / "pictures" / picture.name)
        write_atomic(home / path, filled(document, printed).encode())
        print(path)


if __name__ == "__main__":
    try:
        main()
    except LifelineError as error:
        sys.exit(f"fill_document.py: {error}")
