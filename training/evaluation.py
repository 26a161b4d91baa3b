"""Ratings over a run: which models meet, and what is made of their games, wherever those are played."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lifeline.errors import CheckpointError, ModelError
from lifeline.files import write_atomic
from lifeline.model_file import load_model
from lifeline.play.openings import most_even, random_openings
from lifeline.play.players import Budget, NetworkPlayer, Player, make_player
from lifeline.search.evaluator import OnnxEvaluator
from training.arena import paired, pairs_of, play_games
from training.config import Config
from training.instruments import truths
from training.ratings import Pair, Ratings, fit_ratings
from training.searching import gumbel_constants

log = logging.getLogger(__name__)

ANCHOR = "random"
# Random openings looked at for each that is played.
_CANDIDATES = 8


@dataclass(frozen=True)
class Contestant:
    """A player of rating games: a model of the run, or a fixed baseline.

    Attributes:
        name: "random", "rollout:N", or "iteration-N".
        model: the ONNX bytes of a model; None for a baseline.
    """

    name: str
    model: bytes | None = None

    def player(self, config: Config, threads: int = 1) -> Player:
        """The player itself."""
        rules, search = config.game.rules(), config.search
        if self.model is None:
            return make_player(self.name, rules, threads=threads)
        evaluator, constants = OnnxEvaluator(self.model, threads), gumbel_constants(search, noise=False)
        budget = Budget(config.evaluation.num_simulations, search="gumbel")
        return NetworkPlayer(rules, evaluator, budget, self.name, constants)


@dataclass(frozen=True)
class Job:
    """A rating match to be played: pairs from openings of its own. `known` are the pairs rated with them.

    `inspect` says that the first player is a new model, to be judged by the solver as well.
    """

    first: Contestant
    second: Contestant
    pairs: int
    seed: int
    known: tuple[Pair, ...]
    inspect: bool = False


@dataclass(frozen=True)
class JobResult:
    """Its games as pairs, how many different ones there were, the ratings they lead to, and the CPU seconds it took.

    `truths` is what the solver says of a new model; see `instruments.truths`.
    """

    pairs: tuple[Pair, ...]
    distinct_games: int
    ratings: Ratings
    seconds: float
    truths: dict[str, float]


def play_job(job: Job, config: Config, threads: int = 1) -> JobResult:
    """Play a rating match, swap resolved, and rate all that have played.

    Both players get the same openings, whose advantage the pairs cancel. Of random first turns of both sides those are
    taken that the first player, if it is a model, holds for most even: a game that is decided from the start tells
    nothing of its players.
    """
    began = time.process_time()
    rng = np.random.default_rng(job.seed)
    rules = config.game.rules()
    if job.first.model is None:
        openings = random_openings(rules, job.pairs, rng, turns=2)
    else:
        candidates = random_openings(rules, _CANDIDATES * job.pairs, rng, turns=2)
        openings = most_even(candidates, OnnxEvaluator(job.first.model, threads), job.pairs)
    games = play_games(job.first.player(config, threads), job.second.player(config, threads), paired(openings, rng))
    distinct = len({game.moves for game in games})
    pairs = tuple(pairs_of(games, job.first.name, job.second.name))
    ratings = fit_ratings([*job.known, *pairs], ANCHOR, rng, resamples=200)
    found: dict[str, float] = {}
    if job.inspect and job.first.model is not None:
        evaluator = OnnxEvaluator(job.first.model, threads)
        found = truths(evaluator, config.game.sizes(), config.evaluation.num_simulations)
    return JobResult(pairs, distinct, ratings, time.process_time() - began, found)


class RatingBook:
    """All rating games of a run, kept in a file that a kill at any moment leaves readable.

    Args:
        path: the file, JSON lines; made with the first pair.

    Raises:
        CheckpointError: a line is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.pairs: list[Pair] = []
        # What stands behind the last end of a line was cut off by a kill; `add` writes over it.
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                results = tuple((bool(seat), bool(won)) for seat, won in entry["results"])
                self.pairs.append(Pair(str(entry["first"]), str(entry["second"]), results))
            except (ValueError, KeyError, TypeError):
                raise CheckpointError(f"{path}, line {number}: not a pair of games") from None

    def add(self, pairs: Sequence[Pair]) -> None:
        """Append pairs, on the disk when this returns."""
        text = "".join(json.dumps(vars(p)) + "\n" for p in pairs).encode()
        with self._path.open("r+b" if self._path.exists() else "w+b") as file:
            # Over the rest of a line that a kill cut off.
            data = file.read()
            file.seek(data.rfind(b"\n") + 1)
            file.truncate()
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self.pairs += pairs


def rate(pairs: Sequence[Pair], seed: int) -> Ratings | None:
    """The ratings of all who played these games; None where there were none."""
    return fit_ratings(pairs, ANCHOR, np.random.default_rng(seed), resamples=100) if pairs else None


class Schedule:
    """Says who meets whom: the newest model a baseline, the model before it, one half as old, the other baselines.

    Models enter ever more seldom, each a seventh of the time so far after the last, so that a long run's table stays
    short. They are kept as files, to be there after a restart.

    Args:
        config: of the run.
        folder: where the models are kept.

    Attributes:
        entered: seconds of training at which each model entered, by name.
    """

    def __init__(self, config: Config, folder: Path) -> None:
        self._config, self._folder = config, folder
        self._times = folder / "entered.json"
        self.entered: dict[str, float] = json.loads(self._times.read_text()) if self._times.exists() else {}
        self._models = [name for name in sorted(self.entered) if _is_usable(folder / f"{name}.onnx")]
        self._waiting: list[tuple[str, str]] = []
        self._inspected: str | None = None
        self._last: float | None = None

    def is_due(self, elapsed: float) -> bool:
        """Whether a new model should enter after so many seconds of the run."""
        return self._last is None or elapsed >= self._last + max(self._config.evaluation.every_seconds, self._last / 7)

    def enter(self, iteration: int, model: bytes, elapsed: float) -> None:
        """Take a new model in. Its matches replace those still waiting, which would tell of an older one."""
        name = f"iteration-{iteration:08d}"
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._folder / f"{name}.onnx", model)
        half, baselines = len(self._models) // 2, self._config.evaluation.opponents
        # The baselines take turns at coming first: in a short run the last of a list may never be met.
        first = baselines[len(self.entered) % len(baselines)] if baselines else None
        rest = [opponent for opponent in baselines if opponent != first]
        opponents = [*([first] if first else []), *self._models[-1:], *self._models[half : half + 1], *rest]
        self._waiting = [(name, opponent) for opponent in dict.fromkeys(opponents) if opponent != name]
        if name not in self._models:
            self._models.append(name)
        self.entered[name] = self._last = elapsed
        write_atomic(self._times, json.dumps(self.entered).encode())

    def next(self, seed: int, known: Sequence[Pair]) -> Job | None:
        """The next match to be played, or None when all have been."""
        if not self._waiting:
            return None
        first, second = self._waiting.pop(0)
        new, self._inspected = first != self._inspected, first
        pairs = self._config.evaluation.pairs
        return Job(self._contestant(first), self._contestant(second), pairs, seed, tuple(known), inspect=new)

    def _contestant(self, name: str) -> Contestant:
        path = self._folder / f"{name}.onnx"
        return Contestant(name, path.read_bytes() if name in self._models else None)


def _is_usable(path: Path) -> bool:
    """Whether a model can go on playing: one that is damaged, or of an older version, does not end a run."""
    if not path.exists():
        return False
    try:
        load_model(path)
    except ModelError as error:
        log.warning("%s; it plays no more rating games", error)
        return False
    return True
