"""The whole training loop: self-play, learning, new weights, again."""

from __future__ import annotations

import json
import logging
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

from lifeline.errors import CheckpointError, RunError
from lifeline.files import write_atomic
from lifeline.kernels import spec_of, state_size
from lifeline.play.players import NetworkPlayer, make_player
from lifeline.search.evaluator import Evaluator, OnnxEvaluator
from lifeline.search.gumbel import GumbelConstants
from lifeline.version import __version__
from training import checkpoint
from training.arena import MatchResult, play_match, random_openings
from training.config import Config, build_config, dump_config, read_yaml
from training.export import export_onnx
from training.learner import Learner
from training.replay import ReplayBuffer
from training.selfplay import SelfPlay, Trajectory, streams_of
from training.targets import samples_of
from training.torch_evaluator import TorchEvaluator

log = logging.getLogger(__name__)

CONFIG_FILE = "config.yaml"
RUN_FILE = "run.json"
MODEL_FILE = "bot.onnx"
SUMMARY_FILE = "summary.json"
_STREAMS = ("selfplay", "learner", "weights")


def resolve_device(name: str) -> torch.device:
    """The device of a config's `device`.

    Raises:
        RunError: CUDA is asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise RunError("device: cuda is asked for, but torch finds no CUDA device here")
    return torch.device("cuda" if name == "cuda" or (name == "auto" and torch.cuda.is_available()) else "cpu")


class Run:
    """One training run in its directory.

    Args:
        config: all settings.
        folder: the run's directory, which `create` or `open` has made sure of.
        report: takes each line meant for a person.
    """

    def __init__(self, config: Config, folder: Path, report: Callable[[str], None]) -> None:
        self.config, self.folder, self._report = config, folder, report
        self.rules = config.game.rules()
        self.device = resolve_device(config.device)
        self.threads = config.threads or os.cpu_count() or 1
        torch.set_num_threads(1)  # evaluator and learner spread their batches over threads themselves
        self._rngs = streams_of(config.seed, _STREAMS)
        seed = int(self._rngs["weights"].integers(2**63))
        self.learner = Learner(
            self.rules, config.network, config.learner, self._rngs["learner"], seed, self.device, self.threads
        )
        self.replay = ReplayBuffer(config.replay, state_size(len(spec_of(self.rules).words)), self.rules.num_actions)
        self.selfplay = SelfPlay(self.rules, config.selfplay, config.search, self.evaluator(), self._rngs["selfplay"])
        self.iteration = 0
        self.games = 0
        self.samples_used = 0
        self.seconds = 0.0
        self._stop = False
        self._saved = -1

    # How a run begins.

    @classmethod
    def create(cls, config: Config, folder: Path, report: Callable[[str], None]) -> Run:
        """Begin a new run in a directory of its own.

        Raises:
            RunError: the directory is in use or cannot be written.
        """
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RunError(f"{folder} is in use already; name another with --run-dir, or go on with --resume {folder}")
        facts = {
            "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "seed": config.seed,
            "commit": _commit(),
            "versions": {"lifeline": __version__, "torch": torch.__version__, "numpy": np.__version__},
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / CONFIG_FILE, dump_config(config).encode())
            write_atomic(folder / RUN_FILE, json.dumps(facts, indent=1).encode())
        except OSError as error:
            raise RunError(f"cannot write the run directory {folder}: {error.strerror or error}") from None
        return cls(config, folder, report)

    @classmethod
    def open(cls, folder: Path, report: Callable[[str], None], minutes: float | None = None) -> Run:
        """Go on with a run from its newest checkpoint, or from its start if it had not come to one.

        Args:
            minutes: in place of the config's, counted from now.

        Raises:
            RunError: the directory holds no run or cannot be written.
            CheckpointError: its newest checkpoint is damaged.
        """
        if not (folder / CONFIG_FILE).is_file():
            raise RunError(f"{folder} holds no run to go on with: there is no {CONFIG_FILE}")
        if not os.access(folder, os.W_OK):
            raise RunError(f"cannot write the run directory {folder}")
        config = build_config(read_yaml(folder / CONFIG_FILE), str(folder / CONFIG_FILE))
        if minutes is not None:
            config = config.model_copy(update={"minutes": minutes})
        run = cls(config, folder, report)
        if checkpoint.list_all(run._checkpoints):
            run._load(checkpoint.newest_whole(run._checkpoints))
        report(f"going on with {folder} after iteration {run.iteration}")
        return run

    # The loop.

    def train(self) -> dict[str, Any]:
        """Train until the config says stop or a signal comes, save, export, and hold the final match.

        Returns:
            The summary, which is also written to the run directory.

        Raises:
            RunError: the loss is not finite; the last good checkpoint is kept and named.
        """
        writer = SummaryWriter(str(self.folder / "tensorboard"), purge_step=self.iteration + 1)
        before = self._catch_signals()
        console = _Progress(self.config, self._report)
        started = time.monotonic()
        try:
            while not self._finished(time.monotonic() - started):
                began = time.monotonic()
                trajectories = self.selfplay.play(self.config.selfplay.plies_per_iteration)
                played = time.monotonic()
                if trajectories:
                    self.replay.add(samples_of(trajectories, self.config.learner.root_value_share))
                    self.games += len(trajectories)
                scalars = self._learn()
                self.iteration += 1
                ended = time.monotonic()
                self.seconds += ended - began
                scalars |= self._rates(trajectories, played - began, ended - played)
                for name, value in scalars.items():
                    writer.add_scalar(name, value, self.iteration)
                console.update(self, scalars, ended - started)
                if self.iteration % self.config.checkpoint.every == 0:
                    self.save()
            if self._saved != self.iteration:
                self.save()
            write_atomic(self.folder / MODEL_FILE, self.model())
        finally:
            writer.close()
            for number, handler in before.items():
                signal.signal(number, handler)
        summary = self._summary(self._match() if not self._stop else [])
        write_atomic(self.folder / SUMMARY_FILE, json.dumps(summary, indent=1).encode())
        return summary

    def _learn(self) -> dict[str, float]:
        """Take the steps that self-play has paid for, and hand the new weights to it."""
        c = self.config.learner
        if self.replay.total < c.min_samples:
            return {}
        steps = int((self.replay.total * c.samples_per_sample - self.samples_used) // c.batch_size)
        if steps < 1:
            return {}
        try:
            losses = self.learner.learn(self.replay, steps)
        except RunError as error:
            kept = checkpoint.list_all(self._checkpoints)
            where = f"the last good checkpoint is {kept[-1]}" if kept else "there was no checkpoint yet"
            raise RunError(f"{error}; {where}") from None
        self.samples_used += losses.steps * c.batch_size
        self.selfplay.evaluator = self.evaluator()
        return {
            "loss/policy": losses.policy,
            "loss/value": losses.value,
            "loss/policy_target_entropy": losses.target_entropy,
            "learner/grad_norm": losses.grad_norm,
            "learner/steps": self.learner.steps,
        }

    def evaluator(self) -> Evaluator:
        """An evaluator with the newest averaged weights."""
        weights = self.learner.average_weights()
        if self.device.type == "cuda":
            return TorchEvaluator(self.config.network, weights, self.device)
        return OnnxEvaluator(export_onnx(self.config.network, weights), self.threads)

    def model(self) -> bytes:
        """The newest averaged weights as an ONNX file, with where they come from."""
        entries = {
            "base_trained": str(self.rules.base),
            "opening_trained": self.rules.opening,
            "games": str(self.games),
            "samples": str(self.replay.total),
            "learner_steps": str(self.learner.steps),
            "training_seconds": f"{self.seconds:.0f}",
            "licence": "MIT",
        }
        return export_onnx(self.config.network, self.learner.average_weights(), entries)

    def _finished(self, elapsed: float) -> bool:
        c = self.config
        out_of_time = c.minutes is not None and elapsed >= 60 * c.minutes
        done = c.max_iterations is not None and self.iteration >= c.max_iterations
        return self._stop or out_of_time or done

    def _rates(self, trajectories: list[Trajectory], play: float, learn: float) -> dict[str, float]:
        c = self.config
        plies = c.selfplay.batch_size * c.selfplay.plies_per_iteration
        out = {
            "rates/plies_per_second": plies / play,
            "rates/evaluations_per_second": plies * (c.search.num_simulations + 1) / play,
            "rates/learner_share_of_time": learn / (play + learn),
            "replay/samples": self.replay.total,
            "replay/window": self.replay.window,
            "selfplay/games": self.games,
            "selfplay/games_dropped": self.selfplay.games_dropped,
        }
        if trajectories:
            own = [t for t in trajectories if t.random_plies == 0]
            out["selfplay/plies_per_game"] = float(np.mean([len(t.actions) + t.random_plies for t in trajectories]))
            if own:
                out["selfplay/first_seat_wins"] = float(np.mean([t.outcome > 0 for t in own]))
                out["selfplay/swap_share"] = float(np.mean([(t.actions == self.rules.swap_action).any() for t in own]))
        return out

    # What is kept.

    @property
    def _checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    def save(self) -> Path:
        """Write a checkpoint now and remove those no longer wanted."""
        counters = {
            "games": self.games,
            "samples_used": self.samples_used,
            "learner_steps": self.learner.steps,
            "seconds": self.seconds,
            "generators": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
        }
        saved = checkpoint.save(
            self._checkpoints,
            self.iteration,
            self.config.network.model_dump(mode="json"),
            {name: tensor.cpu().contiguous() for name, tensor in self.learner.average_weights().items()},
            self.learner.state(),
            {"replay": self.replay.state(), "selfplay": self.selfplay.state()},
            counters,
        )
        self._saved = self.iteration
        checkpoint.clean_up(self._checkpoints, self.config.checkpoint.keep_last, self.config.checkpoint.keep_every)
        return saved.path

    def _load(self, saved: checkpoint.Checkpoint) -> None:
        counters = saved.counters
        try:
            for name, rng in self._rngs.items():
                rng.bit_generator.state = counters["generators"][name]
            self.games, self.samples_used = counters["games"], counters["samples_used"]
            self.seconds = counters["seconds"]
            self.learner.load_state(saved.learner_state(), counters["learner_steps"])
            self.replay.load_state(saved.arrays("replay"))
            self.selfplay.load_state(saved.arrays("selfplay"))
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise CheckpointError(f"{saved.path} does not fit this run: {error}") from None
        self.iteration = self._saved = saved.iteration
        self.selfplay.evaluator = self.evaluator()

    # How a run ends.

    def _catch_signals(self) -> dict[int, Any]:
        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True
            self._report(
                f"{signal.Signals(number).name}: finishing this iteration, then saving (again to stop at once)"
            )

        try:
            return {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not in the main thread: whoever runs us handles signals
            return {}

    def _match(self) -> list[MatchResult]:
        """The newest model against each configured opponent."""
        c = self.config.evaluation
        if not c.games:
            return []
        search = self.config.search
        constants = GumbelConstants(search.max_considered, search.c_visit, search.c_scale)
        bot = NetworkPlayer(self.rules, self.evaluator(), c.num_simulations, "bot", constants)
        # Its own generator: holding a match changes nothing of the run.
        rng = np.random.default_rng(self.config.seed)
        results = []
        for name in c.opponents:
            opponent = make_player(name, self.rules, threads=self.threads)
            result = play_match(bot, opponent, random_openings(self.rules, c.games // 2, rng), rng)
            self._report(result.line())
            results.append(result)
        return results

    def _summary(self, matches: list[MatchResult]) -> dict[str, Any]:
        return {
            "iterations": self.iteration,
            "games": self.games,
            "games_dropped": self.selfplay.games_dropped,
            "samples": self.replay.total,
            "learner_steps": self.learner.steps,
            "training_seconds": round(self.seconds, 1),
            "stopped_by_signal": self._stop,
            "model": MODEL_FILE,
            "matches": [vars(m) for m in matches],
        }


class _Progress:
    """A line every few seconds: where the run is, how fast, and how long still."""

    def __init__(self, config: Config, report: Callable[[str], None], every: float = 10.0) -> None:
        self._config, self._report, self._every = config, report, every
        self._next = 0.0
        self._losses: dict[str, float] = {}

    def update(self, run: Run, scalars: dict[str, float], elapsed: float) -> None:
        self._losses |= {k: v for k, v in scalars.items() if k.startswith("loss/")}
        if elapsed < self._next:
            return
        self._next = elapsed + self._every
        loss = " ".join(f"{k.removeprefix('loss/')} {v:.3f}" for k, v in self._losses.items() if "entropy" not in k)
        self._report(
            f"iteration {run.iteration}  games {run.games}  samples {run.replay.total}  steps {run.learner.steps}  "
            f"{scalars['rates/evaluations_per_second']:.0f} evaluations/s  "
            f"{loss or 'filling the replay buffer'}  {self._left(run, elapsed)}"
        )

    def _left(self, run: Run, elapsed: float) -> str:
        ends = []
        if self._config.minutes is not None:
            ends.append(60 * self._config.minutes - elapsed)
        if self._config.max_iterations is not None:
            done = max(1, run.iteration)
            ends.append(run.seconds / done * (self._config.max_iterations - run.iteration))
        if not ends:
            return f"{elapsed / 60:.1f} min"
        left = max(0.0, min(ends))
        return f"{int(left // 60)}:{int(left % 60):02d} left"


def _commit() -> str | None:
    """The commit of the source this runs from, with a mark if it was edited; None outside a checkout."""
    try:
        out = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() or None
