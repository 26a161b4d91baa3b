"""Positions with known values and winning moves, by which models and players are graded, and the grading itself.

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
from lifeline.play.engine import Engine, EngineSettings
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator
from lifeline.search.policies import quiet_policy
from lifeline.search.search import BatchSearch

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

    def sample(self, count: int) -> Graded:
        """Every so manieth of the positions, so that about `count` of them are left, at least one."""
        rows = np.arange(0, len(self.positions), max(1, len(self.positions) // count))
        return Graded(self.rules, tuple(self.positions[i] for i in rows), self.winning[rows])

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


@dataclass(frozen=True)
class Grades:
    """How a model did in solved positions.

    Attributes:
        won: bool [P], whether the player to move wins.
        kept: bool [P], whether the chosen move wins; of no meaning where there is no such move.
        values: float32 [P] in [-1, 1], its values.
    """

    won: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]
    values: npt.NDArray[np.float32]

    @property
    def keeps_win(self) -> npt.NDArray[np.bool_]:
        """Of each won position, whether the chosen move keeps the win."""
        return self.kept[self.won]

    @property
    def right_sign(self) -> npt.NDArray[np.bool_]:
        """bool [P], whether the value has the right sign."""
        return np.asarray((self.values > 0) == self.won)

    @property
    def calibration_error(self) -> float:
        """Mean distance of its chance of winning from how often it comes true, over ten equal steps of that chance."""
        chance = (1 + self.values) / 2
        steps = np.minimum((chance * 10).astype(int), 9)
        errors = [
            abs(float(chance[steps == s].mean() - self.won[steps == s].mean())) * float((steps == s).mean())
            for s in np.unique(steps)
        ]
        return sum(errors)


def grade(evaluator: Evaluator, positions: Graded, simulations: int = 0, search: str = "gumbel") -> Grades:
    """Have a model choose a move in each position, without noise.

    Args:
        simulations: for each move, at least 2; or 0, its policy alone.
        search: a name of `POLICIES`; or "engine", as players meet it: PUCT that solves its leaves near the end, and the
            solver where it soon finishes.
    """
    actions, values = _choose(evaluator, positions.games(), simulations, search)
    return Grades(positions.won, positions.winning[np.arange(len(actions)), actions], values)


@lru_cache(maxsize=4)
def opening_winners(base: int) -> dict[str, str]:
    """Who wins after each first turn of Black if nobody swaps, 'b' or 'w' by its move text; empty where not known."""
    path = FOLDER / f"openings-base{base}.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def swaps_right(evaluator: Evaluator, base: int, simulations: int = 0, search: str = "gumbel") -> npt.NDArray[np.bool_]:
    """For each first turn of Black, whether a model swaps exactly where Black then wins; see `grade`."""
    rules, winners = Rules(base), opening_winners(base)
    env = BatchEnv(rules, len(winners))
    env.reset(positions=[Position.start(rules).play(move) for move in winners])
    actions, _ = _choose(evaluator, env, simulations, search)
    return np.asarray((actions == rules.swap_action) == np.array([winner == "b" for winner in winners.values()]))


def _choose(
    evaluator: Evaluator, games: BatchEnv, simulations: int, search: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The moves and values of a model in some games."""
    if simulations == 0:
        logits, values = evaluator.evaluate(games)
        return np.where(games.legal_action_mask, logits, -np.inf).argmax(axis=1), values
    size = games.batch_size
    if search == "engine":
        engine = Engine(games.rules, evaluator, EngineSettings(simulations))
        found = engine.analyse_many([games.position(row) for row in range(size)], [0] * size)
        return np.array([f.best for f in found]), np.array([f.value for f in found], np.float32)
    batch = BatchSearch(lambda: BatchEnv(games.rules, size), evaluator, quiet_policy(search), simulations)
    result = batch.run(games, np.zeros(size, np.uint64))
    return result.actions, result.root_value


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
