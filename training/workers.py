"""Self-play, rating games and tournaments on a Ray cluster. The only file that knows of Ray.

Workers are actors. Each has two reports in flight at most, so a driver that is busy learning finds the next one ready,
and one that is slow holds them up. A worker or node that dies is replaced; its unfinished games are gone, those it
reported are not, and no game is counted twice: each has a number of its own.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
import torch
from torch import Tensor

import lifeline
import training
from lifeline.errors import LifelineError, RunError
from lifeline.records import GameRecord
from lifeline.search.evaluator import Evaluator
from training.config import Config
from training.evaluation import Job, JobResult, play_job
from training.evaluators import evaluator_of
from training.mixing import MixedPlay
from training.sources import SourceFigures, resident_bytes
from training.tournament import MatchTable, Ticket, Tournament
from training.trajectory import Arrays, Trajectory, pack, unpack

_IN_FLIGHT = 2
# Game ids remembered to recognise one that comes a second time.
_REMEMBERED = 1_000_000
# Deaths in a row, without one report between, after which something is wrong with more than a worker.
_MAX_DEATHS = 20
_NICE = 10
# How long a cluster may take to answer at all; Ray itself would try for many minutes.
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Report:
    """What a worker has to say.

    Attributes:
        games: finished games, packed; None when there were none.
        plies: played, in all games; evaluations: positions judged for them.
        dropped: games dropped at the ply cap since the last report.
        seconds: it took.
        memory: resident bytes of the worker.
    """

    games: Arrays | None
    plies: int
    evaluations: int
    dropped: int
    seconds: float
    memory: int


class _SelfPlayWorker:
    """An actor that plays games for ever, with the newest weights it has been given."""

    def __init__(self, config: Config, entropy: tuple[int, ...]) -> None:
        self._config, self._version = config, -1
        self._rng = np.random.default_rng(np.random.SeedSequence(entropy))
        self._selfplay: MixedPlay | None = None

    def play(self, version: int, weights: list[Any]) -> Report:
        """Play the plies of one report; the weights are fetched only if they are new."""
        began = time.perf_counter()
        if version > self._version:
            evaluator = self._evaluator(ray.get(weights[0]))
            if self._selfplay is None:
                self._selfplay = MixedPlay(self._config, evaluator, self._rng, self._config.worker_gpus > 0)
            self._selfplay.use(evaluator, version)
            self._version = version
        assert self._selfplay is not None
        dropped_before, evaluated_before = self._selfplay.games_dropped, self._selfplay.evaluations
        games = self._selfplay.play(self._config.selfplay.plies_per_iteration)
        plies = self._config.selfplay.plies_per_iteration * self._config.selfplay.batch_size
        evaluations = self._selfplay.evaluations - evaluated_before
        dropped = self._selfplay.games_dropped - dropped_before
        seconds = time.perf_counter() - began
        return Report(pack(games) if games else None, plies, evaluations, dropped, seconds, resident_bytes())

    def pid(self) -> int:
        """Process id of the worker."""
        return os.getpid()

    def _evaluator(self, weights: Mapping[str, Tensor]) -> Evaluator:
        return evaluator_of(self._config, weights, torch.device("cuda" if self._config.worker_gpus else "cpu"), 1)


class _EvaluationWorker:
    """An actor that plays rating matches at low priority."""

    def __init__(self, config: Config) -> None:
        self._config = config
        os.nice(_NICE)

    def play(self, job: Job) -> JobResult:
        """Play one match and rate all players anew."""
        return play_job(job, self._config)


def _connect(cores: int, address: str | None, gpus: int | None) -> None:
    """Start Ray on this machine with so many cores, or join the cluster at an address."""
    packages = [str(Path(m.__file__).parent) for m in (lifeline, training) if m.__file__]
    try:
        if address is not None:
            _knock(address)
        if address is None:
            ray.init(
                address="local",  # not one that somebody else has started here
                num_cpus=cores,
                num_gpus=gpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
            )
        else:
            # Nodes need the same versions of everything else; this project's own code travels along.
            ray.init(address=address, log_to_driver=False, runtime_env={"py_modules": packages})
    except (ConnectionError, RuntimeError, ValueError, OSError, OverflowError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise RunError(f"cannot {'start Ray' if address is None else f'join {address}'}: {reason}") from None


def _knock(address: str) -> None:
    """See that something listens at HOST:PORT; of other forms of an address only Ray knows.

    Raises:
        OSError, OverflowError: nothing does.
    """
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isascii() and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()


class Cluster:
    """Workers of one run, on this machine or a running cluster.

    Args:
        config: of the run.
        address: of a running cluster ("auto", "HOST:PORT"); None starts Ray on this machine.
        session: how often the run has been started, so that no worker's games repeat those of a session before.
        gpus: of this machine, from the first one up, that Ray is told of where it is started here; None = all.

    Attributes:
        wanted: workers there should be.
        restarts: workers replaced.

    Raises:
        RunError: the cluster cannot be reached.
    """

    def __init__(self, config: Config, address: str | None, session: int, gpus: int | None = None) -> None:
        self._config, self._session = config, session
        self._owned = not ray.is_initialized()
        if self._owned:
            _connect(os.cpu_count() or 1 if config.workers == "auto" else int(config.workers), address, gpus)
        cores = int(ray.cluster_resources().get("CPU", 1))
        found = ray.cluster_resources().get("GPU", 0)
        by_gpu = int(found / config.worker_gpus) if config.worker_gpus else cores
        self.wanted = max(1, min(cores, by_gpu)) if config.workers == "auto" else int(config.workers)
        if config.worker_gpus and config.worker_gpus > found:
            raise RunError(f"worker_gpus asks for {config.worker_gpus} of a GPU; the cluster has {found:g} in all")
        self.restarts = 0
        self._plies = self._evaluations = self._dropped = self._duplicates = 0
        self._memory: dict[int, int] = {}
        self._incarnations = 0
        self._deaths = 0
        self._weights: list[Any] = []
        self._version = -1
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, int] = {}
        self._seen: set[int] = set()
        self._order: deque[int] = deque()
        self._rater: Any = None
        self._rating: Any = None

    def figures(self) -> SourceFigures:
        """How the workers are doing; alive are those that have reported since they were started."""
        return SourceFigures(
            plies=self._plies,
            evaluations=self._evaluations,
            games_dropped=self._dropped,
            duplicates=self._duplicates,
            workers_wanted=self.wanted,
            workers_alive=len(self._memory),
            restarts=self.restarts,
            queue=len(self._pending),
            worker_bytes=sum(self._memory.values()),
        )

    def publish(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Give all workers new weights, from their next report on. Reports under way go on with what they have."""
        self._weights, self._version = [ray.put(dict(weights))], version
        for number in range(self.wanted):
            if number not in self._actors:
                self._start(number)

    def _start(self, number: int) -> None:
        c = self._config
        entropy = (c.seed, self._session, number, self._incarnations)
        self._incarnations += 1
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0, "runtime_env": {"env_vars": _ONE_THREAD}}
        if c.worker_gpus:
            options["num_gpus"] = c.worker_gpus
        self._actors[number] = ray.remote(_SelfPlayWorker).options(**options).remote(c, entropy)
        for _ in range(_IN_FLIGHT):
            self._ask(number)

    def _ask(self, number: int) -> None:
        self._pending[self._actors[number].play.remote(self._version, self._weights)] = number

    def collect(self, timeout: float = 1.0) -> list[Trajectory]:
        """Finished games of all reports that are there, waiting for the first one for so many seconds at most.

        Raises:
            RunError: workers die faster than they report, or one met an error of this project's own.
        """
        games: list[Trajectory] = []
        ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        if ready:
            ready, _ = ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
        dead, reason = False, ""
        for reference in ready:
            number = self._pending.pop(reference, None)
            if number is None:  # of a worker that was found dead just now
                continue
            try:
                report: Report = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, LifelineError):
                    raise RunError(f"worker {number}: {error.cause}") from None
                dead, reason = True, str(error.cause or error)
                self._replace(number)
                continue
            except ray.exceptions.RayError as error:
                dead, reason = True, str(error)
                self._replace(number)
                continue
            self._deaths = 0
            self._ask(number)
            games += self._accept(number, report)
        # A node may take many workers with it: that is one death.
        self._deaths += dead
        if self._deaths > _MAX_DEATHS:
            line = reason.strip().splitlines()[-1][:200] if reason.strip() else "no reason given"
            raise RunError(f"workers died {self._deaths} times without one report between: {line}")
        return games

    def _accept(self, number: int, report: Report) -> list[Trajectory]:
        self._plies += report.plies
        self._evaluations += report.evaluations
        self._dropped += report.dropped
        self._memory[number] = report.memory
        games = []
        for game in unpack(report.games) if report.games else []:
            if game.game_id in self._seen:
                self._duplicates += not game.drill
                continue
            self._seen.add(game.game_id)
            self._order.append(game.game_id)
            games.append(game)
        while len(self._order) > _REMEMBERED:
            self._seen.discard(self._order.popleft())
        return games

    def _replace(self, number: int) -> None:
        """Start a new worker in place of one that died; what it had in flight is asked of the new one."""
        self.restarts += 1
        for reference in [r for r, n in self._pending.items() if n == number]:
            del self._pending[reference]
        self._memory.pop(number, None)
        old = self._actors.pop(number, None)
        if old is not None:
            ray.kill(old)
        self._start(number)

    # Rating games.

    @property
    def is_rating(self) -> bool:
        """Whether a rating match is under way."""
        return self._rating is not None

    def rate(self, job: Job) -> None:
        """Begin a rating match; one at a time."""
        if self._rater is None:
            options = {"num_cpus": 0, "max_restarts": 0, "runtime_env": {"env_vars": _ONE_THREAD}}
            self._rater = ray.remote(_EvaluationWorker).options(**options).remote(self._config)
        self._rating = self._rater.play.remote(job)

    def rated(self) -> JobResult | None:
        """The result of the rating match, once; None while there is none. One whose worker died is given up."""
        if self._rating is None or not ray.wait([self._rating], timeout=0)[0]:
            return None
        reference, self._rating = self._rating, None
        try:
            result: JobResult = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise RunError(f"rating games: {error.cause or error}") from None
        except ray.exceptions.RayError:
            self._rater = None
            self.restarts += 1
            return None
        return result

    def close(self) -> None:
        """Stop all workers, and Ray if it was started here."""
        for actor in [*self._actors.values(), *([self._rater] if self._rater else [])]:
            ray.kill(actor)
        self._actors.clear()
        self._pending.clear()
        if self._owned:
            ray.shutdown()


class _MatchWorker:
    """An actor that plays games of a tournament."""

    def __init__(self, tournament: list[Any]) -> None:
        self._table = MatchTable(ray.get(tournament[0]))

    def play(self, tickets: Sequence[Ticket]) -> list[GameRecord]:
        """Play these games; see `MatchTable.play`."""
        return self._table.play(tickets)

    def pid(self) -> int:
        """Process id of the worker."""
        return os.getpid()

    def close(self) -> None:
        """End the programs that play here."""
        self._table.close()


class MatchCluster:
    """Workers of a tournament, on this machine or a running cluster; each plays one bundle of games at a time.

    A worker that dies is replaced, and what it was playing is played anew. One for which the cluster has no core yet is
    given nothing to play until it has started.

    Args:
        tournament: what is played.
        workers: how many; None = one a core of the cluster.
        address: of a running cluster; None starts Ray on this machine.

    Attributes:
        restarts: workers replaced.

    Raises:
        RunError: the cluster cannot be reached.
    """

    def __init__(self, tournament: Tournament, workers: int | None, address: str | None) -> None:
        self._owned = not ray.is_initialized()
        if self._owned:
            _connect(workers or os.cpu_count() or 1, address, gpus=0)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.restarts = 0
        self._deaths = 0
        self._tournament = [ray.put(tournament)]
        self._actors: dict[int, Any] = {}
        self._starting: dict[Any, int] = {}
        self._idle: set[int] = set()
        self._playing: dict[Any, tuple[int, list[Ticket]]] = {}
        for number in range(self.workers):
            self._start(number)

    def _start(self, number: int) -> None:
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0, "runtime_env": {"env_vars": _ONE_THREAD}}
        self._actors[number] = ray.remote(_MatchWorker).options(**options).remote(self._tournament)
        self._starting[self._actors[number].pid.remote()] = number

    def run(self, bundles: Iterable[list[Ticket]], timeout: float = 1.0) -> Iterator[list[GameRecord]]:
        """Play bundles of games, and give the records of each as it is done.

        Gives an empty list now and then while nothing is done, so that a caller can look about.

        Raises:
            RunError: workers die faster than they play, or a player cannot play at all.
        """
        waiting = deque(bundles)
        while waiting or self._playing:
            while waiting and self._idle:
                self._hand(self._idle.pop(), waiting.popleft())
            ready, _ = ray.wait([*self._playing, *self._starting], num_returns=1, timeout=timeout)
            if not ready:
                yield []
            for reference in ready:
                started = self._starting.pop(reference, None)
                number, bundle = (started, []) if started is not None else self._playing.pop(reference)
                try:
                    answer = ray.get(reference)
                except ray.exceptions.RayError as error:
                    cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else None
                    if isinstance(cause, LifelineError):
                        self._idle.add(number)  # it lives, and may have programs to end
                        raise RunError(str(cause)) from None
                    self._replace(number, str(cause or error))
                    if bundle:
                        waiting.appendleft(bundle)
                    continue
                self._idle.add(number)
                if started is None:
                    self._deaths = 0
                    records: list[GameRecord] = answer
                    yield records

    def _hand(self, number: int, bundle: list[Ticket]) -> None:
        self._playing[self._actors[number].play.remote(bundle)] = number, bundle

    def _replace(self, number: int, reason: str) -> None:
        self.restarts += 1
        self._deaths += 1
        if self._deaths > _MAX_DEATHS:
            line = reason.strip().splitlines()[-1][:200] if reason.strip() else "no reason given"
            raise RunError(f"workers died {self._deaths} times without one game between: {line}")
        ray.kill(self._actors[number])
        self._start(number)

    def close(self) -> None:
        """Stop all workers, and Ray if it was started here. Games under way are given up."""
        closing = [self._actors[number].close.remote() for number in self._idle]
        ray.wait(closing, num_returns=len(closing), timeout=5) if closing else None
        for actor in self._actors.values():
            ray.kill(actor)
        if self._owned:
            ray.shutdown()


# Each worker is one thread: whatever library would start more is told not to.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
