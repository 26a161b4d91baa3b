"""Positions with known values and winning moves, by which models and players are graded.

They were reached by play that was random or, half of the time where the solver was quick, perfect; they are solved
exactly and distinct under the symmetries of the board. `scripts/make_grading.py` made them. Base 3: from the third turn
to the end. Base 4: from the fifteenth turn on, but for those too hard to solve.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lifeline.env import BatchEnv
from lifeline.errors import LifelineError
from lifeline.notation import action_text, parse_move
from lifeline.rules import Position, Rules

FOLDER = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Graded:
    """Solved positions.

    Attributes:
        rules: of all of them.
        positions: P of them.
        winning: bool [P, A], the moves that win for the player to move; none where the position is lost.
    """

    rules: Rules
    positions: tuple[Position, ...]
    winning: npt.NDArray[np.bool_]

    @property
    def won(self) -> npt.NDArray[np.bool_]:
        """bool [P], whether the player to move wins."""
        return np.asarray(self.winning.any(axis=1))

    def games(self) -> BatchEnv:
        """A fresh environment with a game in each position."""
        env = BatchEnv(self.rules, len(self.positions))
        env.reset(positions=self.positions)
        return env


def path_of(base: int) -> Path:
    """The file of a base's positions, whether it is there or not."""
    return FOLDER / f"graded-base{base}.jsonl.gz"


@lru_cache(maxsize=4)
def graded(base: int) -> Graded:
    """The positions of a base, strong pie.

    Raises:
        LifelineError: there are none of this base, or the file is damaged.
    """
    rules, path = Rules(base), path_of(base)
    if not path.exists():
        raise LifelineError(f"there are no graded positions of base {base}")
    positions, winning = [], []
    for number, line in enumerate(gzip.decompress(path.read_bytes()).decode().splitlines(), start=1):
        try:
            entry = json.loads(line)
            positions.append(Position.parse(entry["position"], rules))
            actions = [parse_move(move, rules.board)[0] for move in entry["winning"]]
        except (ValueError, KeyError, LifelineError) as error:
            raise LifelineError(f"{path}, line {number}: {error}") from None
        winning.append(np.isin(np.arange(rules.num_actions), actions))
    return Graded(rules, tuple(positions), np.array(winning))


def line_of(position: Position, winning: tuple[int, ...]) -> str:
    """One line of such a file."""
    moves = [action_text(action, position.rules.board) for action in winning]
    return json.dumps({"position": position.text(), "winning": moves})


def canonical_text(position: Position) -> str:
    """The least text among the twelve symmetric forms of a position: the same for all of them."""
    forms = []
    for symmetry in position.rules.board.symmetries:
        stones = [""] * position.rules.num_cells
        for cell, stone in enumerate(position.stones):
            stones[symmetry[cell]] = stone
        forms.append("".join(stones))
    return f"{min(forms)} {position.text().split(' ', 1)[1]}"
