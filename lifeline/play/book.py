"""Books of openings: varied, near-balanced, the swap behind them; kept as data, made by judging random ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lifeline import kernels
from lifeline.env import BatchEnv
from lifeline.errors import IllegalMoveError, LifelineError, NotationError
from lifeline.files import write_atomic
from lifeline.play.openings import Opening, random_openings
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator
from lifeline.search.policies import quiet_policy
from lifeline.search.rollout import RolloutSearch
from lifeline.search.search import BatchSearch
from lifeline.solver import Solver
from lifeline.streams import state_keys

BOOK_FORMAT = 1
_MAX_BYTES = 20_000_000
_BATCH = 128

Judge = Callable[[Sequence[Position]], Sequence[float]]
"""Takes running positions, gives the value in [-1, 1] of each for its player to move; 0 is even."""


@dataclass(frozen=True)
class Book:
    """Openings of one set of rules.

    Attributes:
        rules: what they are openings of.
        openings: from the most even one on.
        values: what each was judged to be worth to the player to move, in [-1, 1].
        made_by: how they were judged, for people.
    """

    rules: Rules
    openings: tuple[Opening, ...]
    values: tuple[float, ...]
    made_by: str

    def write(self, path: Path) -> None:
        """Write it as JSON.

        Raises:
            LifelineError: the file cannot be written.
        """
        head = {
            "format": BOOK_FORMAT,
            "base": self.rules.base,
            "opening": self.rules.opening,
            "komi": self.rules.komi,
            "adjacent_setup": self.rules.adjacent_setup,
            "made_by": self.made_by,
        }
        lines = [
            json.dumps({"moves": o.text(), "value": round(v, 4) + 0.0})
            for o, v in zip(self.openings, self.values, strict=True)
        ]
        text = json.dumps(head)[:-1] + ', "openings": [\n' + ",\n".join(lines) + "\n]}\n"
        try:
            write_atomic(path, text.encode())
        except OSError as error:
            raise LifelineError(f"{path}: cannot be written: {error.strerror or error}") from None


def read_book(path: Path) -> Book:
    """Read a book; its moves are played by the rules.

    Raises:
        NotationError: no book, damaged, or with an illegal opening; the message names the file and the opening.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise NotationError(f"{path}: larger than any book of openings")
        value = json.loads(path.read_text(encoding="utf-8"))
        return _book_of(value)
    except OSError as error:
        raise NotationError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise NotationError(f"{path}: no book of openings: {str(error)[:200]}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise NotationError(f"{path}: no book of openings: {type(error).__name__} {str(error)[:60]}") from None


def _book_of(value: dict[str, Any]) -> Book:
    if value["format"] != BOOK_FORMAT:
        raise ValueError(f"format {str(value['format'])[:20]}; this version reads {BOOK_FORMAT}")
    rules = Rules(value["base"], value["opening"], value["komi"], value["adjacent_setup"])
    openings, values = [], []
    for number, entry in enumerate(value["openings"], start=1):
        try:
            opening = Opening.parse(rules, str(entry["moves"]))
        except (NotationError, IllegalMoveError) as error:
            raise ValueError(f"opening {number}: {error}") from None
        if opening.position.is_over:
            raise ValueError(f"opening {number}: the game is over")
        openings.append(opening)
        values.append(float(entry["value"]))
    if not openings:
        raise ValueError("it has no openings")
    return Book(rules, tuple(openings), tuple(values), str(value["made_by"])[:200])


def shipped_book(rules: Rules) -> Book | None:
    """The book that comes with the program for these rules, if there is one."""
    path = Path(__file__).parent / "books" / f"base{rules.base}-{rules.opening}.json"
    if rules.adjacent_setup != "allowed" or rules.komi or not path.exists():
        return None
    return read_book(path)


def make_book(
    rules: Rules,
    judge: Judge,
    made_by: str,
    count: int,
    rng: np.random.Generator,
    turns: int = 2,
    candidates: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    known: Sequence[Opening] = (),
) -> Book:
    """Judge random openings, no two of which are mirror images of each other, and keep the most even ones.

    Args:
        count: openings wanted; fewer where there are not so many.
        turns: of the openings, at least 2: behind the swap.
        candidates: looked at, 8 for each that is wanted if not given.
        progress: called with how many have been judged, of how many.
        known: openings of which it shall have none, nor mirror images of them.

    Raises:
        ConfigError: games hardly last for so many turns.
    """
    wanted = 8 * count if candidates is None else candidates
    taken = {_canonical(opening.position) for opening in known}
    distinct: dict[bytes, Opening] = {}
    for _ in range(4):
        before = len(distinct)
        for opening in random_openings(rules, wanted + len(taken), rng, turns):
            image = _canonical(opening.position)
            if image not in taken:
                distinct.setdefault(image, opening)
        if len(distinct) >= wanted or len(distinct) == before:
            break
    found = list(distinct.values())[:wanted]
    values: list[float] = []
    for start in range(0, len(found), _BATCH):
        values += judge([o.position for o in found[start : start + _BATCH]])
        if progress is not None:
            progress(len(values), len(found))
    best = np.argsort(np.abs(values), kind="stable")[:count]
    return Book(rules, tuple(found[i] for i in best), tuple(float(values[i]) for i in best), made_by)


def _canonical(position: Position) -> bytes:
    """The same for a position and its mirror images."""
    stones = np.array([".bw".index(s) for s in position.stones], np.uint8)
    return min(bytes(stones[symmetry]) for symmetry in position.rules.board.symmetries)


def network_judge(rules: Rules, evaluator: Evaluator, num_simulations: int) -> Judge:
    """Judges by a Gumbel search without noise."""
    search = BatchSearch(lambda: BatchEnv(rules, _BATCH), evaluator, quiet_policy(), num_simulations)

    def judge(positions: Sequence[Position]) -> Sequence[float]:
        env = BatchEnv(rules, _BATCH)
        env.reset(positions=[positions[i % len(positions)] for i in range(_BATCH)])
        values: list[float] = search.run(env, np.zeros(_BATCH, np.uint64)).root_value.tolist()
        return values[: len(positions)]

    return judge


def rollout_judge(rules: Rules, num_rollouts: int) -> Judge:
    """Judges by searches with random rollouts: for boards that no model has been trained on.

    A search takes the side of whoever moves first in it, so half of what is taken is the opponent's word: that of a
    search one ply on.
    """
    search = RolloutSearch(rules, num_rollouts)

    def value(position: Position) -> tuple[int, float]:
        state = kernels.encode_position(position)
        return search.search(state, state_keys(np.zeros(1, np.uint64), state[None])[0])

    def judge(positions: Sequence[Position]) -> Sequence[float]:
        values = []
        for position in positions:
            action, ours = value(position)
            after = position.play(action)
            if after.is_over:
                theirs = -1.0 if after.winner == position.to_play else 1.0
            else:
                theirs = value(after)[1] * (-1 if after.to_play == position.to_play else 1)
            values.append((ours - theirs) / 2)
        return values

    return judge


def solver_judge(rules: Rules) -> Judge:
    """Judges by exact values: what a player may expect who moves at random once, is answered at random, and both are
    perfect from then on. Solvable positions are won or lost, but not equally easy to win.
    """
    solver = Solver(rules, table_bits=22)

    def expectation(position: Position) -> float:
        """From the side of seat 0, one random ply ahead."""
        winning = solver.solve(position).winning or ()
        mover = 1 if position.to_play == 0 else -1
        return mover * (2 * len(winning) / len(position.legal_actions()) - 1)

    def judge(positions: Sequence[Position]) -> Sequence[float]:
        values = []
        for position in positions:
            after = [position.play(a) for a in position.legal_actions()]
            each = [(1.0 if p.winner == 0 else -1.0) if p.is_over else expectation(p) for p in after]
            values.append(float(np.mean(each)) * (1 if position.to_play == 0 else -1))
        return values

    return judge
