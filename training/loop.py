"""The whole training loop: games, learning, new weights, again; and, with workers, ratings beside it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from lifeline.errors import CheckpointError, RunError
from lifeline.files import write_atomic
from lifeline.play.openings import random_openings
from lifeline.search.evaluator import UniformEvaluator
from training import checkpoint, rundir
from training.arena import MatchResult, play_match
from training.backward import BackwardSolver
from training.config import Config, SelfPlayConfig
from training.console import LiveConsole
from training.devices import count_gpus, describe_devices, number_type, place
from training.evaluation import Contestant, RatingBook, Schedule, rate
from training.export import export_onnx
from training.learner import Learner, Losses, rate_at
from training.monitor import Figures, Monitor, elo_curve
from training.provenance import describe, lineage
from training.ratings import Ratings
from training.replay import Replay
from training.selfplay import SelfPlay, streams_of
from training.sessions import begin_session, read_sessions
from training.shards import ShardStore
from training.sources import GameSource, LocalSource, resident_bytes
from training.targets import samples_of
from training.trajectory import Trajectory, by_size, without_drills
from training.weights_file import find_weights

_STREAMS = ("selfplay", "learner", "weights")
# Learner steps between two looks at the workers, however much it has to catch up.
_MOST_STEPS = 256


def check_machine(config: Config, address: str | None) -> None:
    """See that a run can be had here, before anything is written.

    Raises:
        RunError: devices are asked for that are not there, or a cluster is named that no worker would use.
    """
    place(config, count_gpus())
    if address is not None and config.workers == 0:
        raise RunError("a cluster's address is of no use with workers: 0, which keeps all in this process")


class Run:
    """One training run in its directory. `create` begins one, `open` goes on with one.

    Args:
        config: all settings.
        folder: the run's directory, which exists.
        console: what a person looks at.
        lock: of the directory, see `rundir.lock`; let go of when training ends.
        address: of a running Ray cluster; None for this machine.
    """

    def __init__(
        self, config: Config, folder: Path, console: LiveConsole, lock: BinaryIO, address: str | None = None
    ) -> None:
        self.config, self.folder, self._console, self._address = config, folder, console, address
        self._lock = lock
        self.rules = config.game.rules()
        self._placement = place(config, count_gpus())
        self.device = self._placement.learners[0]
        self._dtype = number_type(config, self.device)
        self.threads = config.threads or os.cpu_count() or 1
        torch.set_num_threads(1)  # evaluator and learner spread their batches over threads themselves
        beside = config.workers != 0 and not config.threads  # workers take turns with the learner on the other half
        self.learner_threads = max(1, self.threads // 2) if beside else self.threads
        self._rngs = streams_of(config.seed, _STREAMS)
        seed = int(self._rngs["weights"].integers(2**63))
        self.learner = Learner(
            list(config.game.sizes()),
            config.network,
            config.learner,
            self._rngs["learner"],
            seed,
            self.device,
            self.learner_threads,
            self._placement.learners[1:],
            self._dtype,
        )
        self.replay = Replay(config.replay, config.game.sizes())
        self.shards = ShardStore(folder / rundir.GAMES, config.storage.max_mb * 1e6)
        self.iteration = self.games = self.samples_used = 0
        self._credit, self._credited = 0.0, 0  # what self-play has paid for and is not yet learnt; for how many samples
        self.seconds = 0.0
        self.ratings: Ratings | None = None
        self._book = RatingBook(folder / rundir.RATINGS_FILE)
        self._schedule = Schedule(config, folder / rundir.MODELS)
        self._rating_seconds = 0.0
        self._unfinished: dict[str, Any] | None = None
        self._stop = False
        self._saved, self._saved_at = -1, time.monotonic()
        self._state_written = 0.0

    # How a run begins.

    @classmethod
    def create(
        cls,
        config: Config,
        folder: Path,
        console: LiveConsole,
        address: str | None = None,
        init_from: Path | None = None,
    ) -> Run:
        """Begin a new run in a directory of its own.

        Args:
            init_from: a checkpoint, a run with one, or a file of weights, that it begins with.

        Raises:
            RunError: the directory is in use or cannot be written; see also `check_machine`.
            CheckpointError: the checkpoint is damaged, or its weights are those of another network.
        """
        check_machine(config, address)
        first = find_weights(init_from).grown(config.network) if init_from else None
        if first is None:
            lock = rundir.create(config, folder)
        else:
            first.fit(config.network)
            lock = rundir.create(config, folder, str(first.source), lineage(first))
        run = cls(config, folder, console, lock, address)
        if first is not None:
            run.learner.start_from(first.tensors)
            run.save(None)  # so that a run killed early still begins with them
        return run

    @classmethod
    def open(
        cls,
        folder: Path,
        console: LiveConsole,
        overrides: tuple[str, ...] = (),
        session: dict[str, Any] | None = None,
        address: str | None = None,
    ) -> Run:
        """Go on with a run from its newest checkpoint, or from its start if it had not come to one.

        Args:
            overrides: settings to change from now on; see `rundir.change_config`.
            session: top-level settings in place of the config's, for this time only.

        Raises:
            RunError: the directory holds no run or cannot be written, or another process trains it.
            ConfigError: a setting is wrong or cannot change.
            CheckpointError: its newest checkpoint, or what belongs to it, is damaged.
        """
        lock = rundir.lock(folder)
        config = rundir.change_config(folder, overrides).model_copy(update=session or {})
        check_machine(config, address)
        run = cls(config, folder, console, lock, address)
        if checkpoint.list_all(run._checkpoints):
            run._load(checkpoint.newest_whole(run._checkpoints))
        else:
            if config.workers == 0:
                run.shards.truncate(0)
            run.games = sum(s.games for s in run.shards.shards)
            run._fill_window({}, 0)
        run.ratings = rate(run._book.pairs, config.seed)
        console.message(f"going on with {folder} after iteration {run.iteration}")
        return run

    # The loop.

    def train(self) -> dict[str, Any]:
        """Train until the config says stop or a signal comes, save, export, and hold the final match.

        Returns:
            The summary, which is also written to the run directory.

        Raises:
            RunError: the loss is not finite or a learner's process died, the last good checkpoint being kept and named;
                or workers keep dying.
        """
        with self._lock:
            return self._train()

    def _train(self) -> dict[str, Any]:
        session = begin_session(self.folder, self.iteration, self.config)
        if len(self._placement.learners) > 1:
            self._console.message(f"learning on {', '.join(map(str, self._placement.learners))}")
        self._tell("training", now=True)
        with (
            contextlib.closing(self.learner),
            contextlib.closing(Monitor(self.folder, self.config, self._console, self.iteration)) as monitor,
            contextlib.closing(self._source(session)) as source,
            self._signals(),  # last: Ray takes SIGTERM for itself when it starts
        ):
            source.publish(self._weights(), self.learner.steps)
            if self._unfinished is not None and isinstance(source, LocalSource):
                source.load_state(self._unfinished)
            started = time.monotonic()
            while not self._finished(time.monotonic() - started):
                began = time.monotonic()
                games = source.collect()
                self._keep(games)
                losses = self._learn(source, rate_at(self.config.learner, self._done(began - started)))
                self.iteration += 1
                self.seconds += time.monotonic() - began
                self._rate(source, monitor)
                monitor.iteration(self._figures(source, time.monotonic() - started), games, losses, self.ratings)
                self._tell("training")
                if self._is_save_due():
                    self.save(source)
            if self._saved != self.iteration:
                self.save(source)
        write_atomic(self.folder / rundir.MODEL_FILE, self.model())
        self._tell("evaluating", now=True)
        summary = self._summary(self._match() if not self._stop else [])
        rundir.write_json(self.folder / rundir.SUMMARY_FILE, summary)
        if self.ratings:
            curve = elo_curve(self.ratings, self._schedule.entered, f"base {self.rules.base}, {self.folder.name}")
            write_atomic(self.folder / rundir.CURVE_FILE, curve)
        self._tell("stopped" if self._stop else "finished", now=True)
        return summary

    def _source(self, session: int) -> GameSource:
        """This process, or workers on a cluster."""
        if self.config.workers == 0:
            return LocalSource(self.config, self._rngs["selfplay"], self.device, self.threads)
        # Compiled once here, so that the workers find the kernels in the cache.
        one = SelfPlayConfig(
            batch_size=1,
            random_opening_share=0,
            random_start_share=1,
            stray_share=float(self.config.selfplay.stray_share > 0),
        )
        for rules in self.config.game.sizes():
            SelfPlay(rules, one, self.config.search, UniformEvaluator(), np.random.default_rng(0)).play(1)
            if self.config.selfplay.solve_nodes:
                BackwardSolver(rules, 1).warm_up()
        from training.workers import Cluster

        cluster = Cluster(self.config, self._address, session, self._placement.worker_gpus)
        self._console.message(f"{cluster.wanted} workers on {self._address or 'this machine'}")
        return cluster

    def _keep(self, games: list[Trajectory]) -> None:
        """Put finished games on disk and into the window."""
        if not games:
            return
        self.games += len(without_drills(games))
        c = self.config
        for group in by_size(games):
            self.replay.add(samples_of(group, c.learner.root_value_share, c.replay.surprise_share))
        self.shards.append(games)
        self.shards.flush(self.replay.window)

    def _done(self, elapsed: float) -> float:
        """The share of what this session is to do that is done, 0 if nothing says when it ends.

        Args:
            elapsed: seconds of this session.
        """
        c = self.config
        by_time = elapsed / (60 * c.minutes) if c.minutes is not None else 0.0
        by_count = self.iteration / c.max_iterations if c.max_iterations else 0.0
        return max(by_time, by_count)

    def _learn(self, source: GameSource, rate: float) -> Losses | None:
        """Take the steps that self-play has paid for, and hand the new weights to it."""
        c = self.config.learner
        if self.replay.total < c.min_samples:
            return None
        self._credit += (self.replay.total - self._credited) * c.samples_per_sample
        self._credited = self.replay.total
        steps = int(self._credit // c.batch_size)
        if steps < 1:
            return None
        try:
            losses = self.learner.learn(self.replay, min(steps, _MOST_STEPS), rate)
        except RunError as error:
            kept = checkpoint.list_all(self._checkpoints)
            where = f"the last good checkpoint is {kept[-1]}" if kept else "there was no checkpoint yet"
            raise RunError(f"{error}; {where}") from None
        self.samples_used += losses.steps * c.batch_size
        self._credit -= losses.steps * c.batch_size
        source.publish(self._weights(), self.learner.steps)
        return losses

    def _weights(self) -> dict[str, Tensor]:
        """The newest averaged weights, as games are made with them."""
        return {name: tensor.cpu() for name, tensor in self.learner.average_weights().items()}

    def model(self) -> bytes:
        """The newest averaged weights as an ONNX file, with where they come from."""
        facts, (_, made) = rundir.read_facts(self.folder), read_sessions(self.folder)
        entries = describe(self.iteration, self._counters(), self.config, self._book.pairs, facts=facts, made=made)
        return export_onnx(self.config.network, self.learner.average_weights(), entries)

    def _counters(self) -> dict[str, Any]:
        """What a checkpoint says of the training behind it."""
        return {
            "games": self.games,
            "samples": self.replay.total,
            "sizes": {str(size): total for size, total in self.replay.totals.items()},
            "window": self.replay.window,
            "samples_used": self.samples_used,
            "credit": self._credit,
            "credited": self._credited,
            "learner_steps": self.learner.steps,
            "seconds": self.seconds,
            "rating_seconds": self._rating_seconds,
            "device": describe_devices(self._placement.learners, self._dtype),
            "generators": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
        }

    def _finished(self, elapsed: float) -> bool:
        c = self.config
        out_of_time = c.minutes is not None and elapsed >= 60 * c.minutes
        done = c.max_iterations is not None and self.iteration >= c.max_iterations
        return self._stop or out_of_time or done

    def _rate(self, source: GameSource, monitor: Monitor) -> None:
        """Take in what rating games there are and begin the next, within their share of the machine's time."""
        share = self.config.evaluation.share
        if self.config.workers == 0 or share == 0:
            return
        from training.workers import Cluster

        assert isinstance(source, Cluster)
        result = source.rated()
        if result is not None:
            self._book.add(result.pairs)
            self._rating_seconds += result.seconds
            self.ratings = result.ratings
            monitor.truths(result.truths, self.iteration)
        if self.learner.steps and self._schedule.is_due(self.seconds):
            model = export_onnx(self.config.network, self.learner.average_weights())
            self._schedule.enter(self.iteration, model, self.seconds)
        if not source.is_rating and self._rating_seconds <= share * self.seconds * (os.cpu_count() or 1):
            job = self._schedule.next(self.config.seed + len(self._book.pairs), self._book.pairs)
            if job is not None:
                source.rate(job)

    def _figures(self, source: GameSource, elapsed: float) -> Figures:
        """Where the run is now."""
        return Figures(
            iteration=self.iteration,
            games=self.games,
            samples=self.replay.total,
            learner_steps=self.learner.steps,
            samples_used=self.samples_used,
            elapsed=elapsed,
            seconds_left=self._left(elapsed),
            window=self.replay.window,
            age=self.learner.steps - self.replay.mean_version(),
            disk_bytes=self.shards.bytes,
            memory_bytes=resident_bytes(),
            **vars(source.figures()),
        )

    def _left(self, elapsed: float) -> float | None:
        """Seconds until the run ends by itself, None if nothing says when."""
        ends = []
        if self.config.minutes is not None:
            ends.append(60 * self.config.minutes - elapsed)
        if self.config.max_iterations is not None:
            ends.append(self.seconds / max(1, self.iteration) * (self.config.max_iterations - self.iteration))
        return max(0.0, min(ends)) if ends else None

    def _elo(self) -> float | None:
        """Rating of the newest rated model."""
        players = self.ratings.players if self.ratings else {}
        models = sorted(name for name in players if name.startswith("iteration-"))
        return players[models[-1]].elo if models else None

    def _tell(self, status: str, now: bool = False) -> None:
        """Write the run's state for other programs, every few seconds."""
        if not now and time.monotonic() < self._state_written + 2:
            return
        self._state_written = time.monotonic()
        rundir.write_state(
            self.folder, status, self.iteration, self.games, self.replay.total, self.seconds, self._elo()
        )

    # What is kept.

    @property
    def _checkpoints(self) -> Path:
        return self.folder / rundir.CHECKPOINTS

    def _is_save_due(self) -> bool:
        c = self.config.checkpoint
        return self.iteration % c.every == 0 or time.monotonic() >= self._saved_at + 60 * c.minutes

    def save(self, source: GameSource | None) -> Path:
        """Write a checkpoint now and remove those no longer wanted. The games it rests on are on disk already."""
        saved = checkpoint.save(
            self._checkpoints,
            self.iteration,
            self.config.network.model_dump(mode="json"),
            {name: tensor.cpu().contiguous() for name, tensor in self.learner.average_weights().items()},
            self.learner.state(),
            {"selfplay": source.state()} if isinstance(source, LocalSource) else {},
            self._counters(),
        )
        self._saved, self._saved_at = self.iteration, time.monotonic()
        checkpoint.clean_up(self._checkpoints, self.config.checkpoint.keep_last, self.config.checkpoint.keep_every)
        return saved.path

    def _load(self, saved: checkpoint.Checkpoint) -> None:
        counters = saved.counters
        try:
            for name, rng in self._rngs.items():
                rng.bit_generator.state = counters["generators"][name]
            self.games, self.samples_used = counters["games"], counters["samples_used"]
            self.seconds, self._rating_seconds = counters["seconds"], counters["rating_seconds"]
            self.learner.load_state(saved.learner_state(), counters["learner_steps"])
            samples, sizes = int(counters["samples"]), {int(n): int(v) for n, v in counters["sizes"].items()}
            paid = samples * self.config.learner.samples_per_sample - self.samples_used
            self._credit = float(counters.get("credit", paid))  # not kept by earlier versions
            self._credited = int(counters.get("credited", samples))
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise CheckpointError(f"{saved.path} does not fit this run: {error}") from None
        if self.config.workers == 0:
            # In one process the games behind the checkpoint will be made again, exactly.
            self.shards.truncate(samples)
            if "selfplay.safetensors" in saved.manifest["files"]:
                self._unfinished = saved.arrays("selfplay")
        # With workers they count as they are, and the learner still owes them its steps.
        self.games += sum(s.games for s in self.shards.shards if s.first_sample >= samples)
        self._fill_window(sizes, samples)
        self.iteration = self._saved = saved.iteration

    def _fill_window(self, totals: dict[int, int], behind: int) -> None:
        """Rebuild the replay buffer from the games on disk.

        Args:
            totals: samples made of each size, by number of actions, when `behind` samples of all sizes were made.
        """
        totals = dict(totals)
        for shard in self.shards.shards:
            if shard.first_sample >= behind:
                size = shard.read()[0].policy_targets.shape[1]
                totals[size] = totals.get(size, 0) + shard.samples
        self.replay.refill(totals, self.shards.newest_first(), self.config.learner)

    # How a run ends.

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Let the first SIGINT or SIGTERM end the loop politely."""

        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True
            name = signal.Signals(number).name
            self._console.message(f"{name}: finishing this iteration, then saving (again to stop at once)")

        before = {}
        with contextlib.suppress(ValueError):  # not in the main thread: whoever runs us handles signals
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _match(self) -> list[MatchResult]:
        """The newest model against each configured opponent."""
        c = self.config.evaluation
        if not c.games:
            return []
        bot = Contestant("bot", export_onnx(self.config.network, self.learner.average_weights()))
        player = bot.player(self.config, self.threads)
        # Its own generator: holding a match changes nothing of the run.
        rng = np.random.default_rng(self.config.seed)
        results = []
        for name in c.opponents:
            opponent = Contestant(name).player(self.config, self.threads)
            result = play_match(player, opponent, random_openings(self.rules, c.games // 2, rng), rng)
            self._console.message(result.line())
            results.append(result)
        return results

    def _summary(self, matches: list[MatchResult]) -> dict[str, Any]:
        ratings = self.ratings.players if self.ratings else {}
        return {
            "iterations": self.iteration,
            "games": self.games,
            "samples": self.replay.total,
            "learner_steps": self.learner.steps,
            "training_seconds": round(self.seconds, 1),
            "rating_seconds": round(self._rating_seconds, 1),
            "stopped_by_signal": self._stop,
            "model": rundir.MODEL_FILE,
            "ratings": {name: vars(rating) for name, rating in ratings.items()},
            "matches": [vars(m) for m in matches],
        }
