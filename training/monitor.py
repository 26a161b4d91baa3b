"""What a run shows of itself: TensorBoard, the console's status, sample games, the curve of its ratings."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch.utils.tensorboard import SummaryWriter

from lifeline.kernels import decode_state
from lifeline.notation import action_text
from lifeline.records import GameRecord, PlayerInfo, Result, write_records
from lifeline.rules import Position, Rules
from training.config import Config
from training.console import LiveConsole, Status
from training.learner import Losses
from training.pictures import elo_curve_png, game_picture
from training.ratings import Ratings
from training.searching import simulations_at
from training.targets import winners
from training.trajectory import Trajectory, without_drills

# Seconds of the past that rates are taken over, between two writings of sample games, and between two pictures.
_RATES_OVER = 20.0
_RECORDS_EVERY = 15.0
_PICTURES_EVERY = 60.0
_RECENT = 200
# Games played on after somebody would have given up that the share of mistakes is taken over; from so many on, and
# above that share, a person is warned.
_RESIGNATIONS = 1000
_ENOUGH_RESIGNATIONS = 100
_WRONG_RESIGNATIONS = 0.05
# Sound runs have z-losses of 1 to 4; here log-probabilities are shifted by a hundred.
_RUN_OFF = 1e4
RECENT_FILE = "recent_games.jsonl"


@dataclass(frozen=True)
class Figures:
    """Where a run is after an iteration, as far as it is not in the objects handed over with it.

    Attributes:
        iteration, games, samples, learner_steps, samples_used: counts since the run began.
        plies: of this session, finished games or not; evaluations: positions judged for them.
        elapsed: seconds of this session; seconds_left: until the end, None if nothing says when.
        window: samples drawn from; age: their mean age in learner steps.
        disk_bytes, memory_bytes, worker_bytes: finished games on disk, this process, all workers.
        workers_alive, workers_wanted, restarts, queue, games_dropped, duplicates: of the workers.
    """

    iteration: int
    games: int
    samples: int
    learner_steps: int
    samples_used: int
    plies: int
    evaluations: int
    elapsed: float
    seconds_left: float | None
    window: int
    age: float
    disk_bytes: int
    memory_bytes: int
    worker_bytes: int
    workers_alive: int
    workers_wanted: int
    restarts: int
    queue: int
    games_dropped: int
    duplicates: int


def record_of(game: Trajectory, rules: Rules, num_simulations: int) -> GameRecord:
    """The record of a finished game, with the root values of its search."""
    player = PlayerInfo("self-play", {"simulations": num_simulations, "learner_steps": game.version})
    return GameRecord(
        rules,
        tuple(action_text(int(a), rules.board) for a in game.actions),
        Result(0 if game.outcome > 0 else 1, "played out" if game.resigned < 0 else "resigned"),
        (player, player),
        decode_state(game.states[0], rules).text(),
        values=tuple(round(float(v), 3) for v in np.clip(game.root_values, -1, 1)),
        id=f"{game.game_id:016x}",
        # The kernels have played it; the driver has no time to play it again by the slow rules.
        replay=False,
    )


class Monitor:
    """Takes every iteration in and shows it.

    Args:
        folder: the run's directory.
        config: of the run.
        console: what a person looks at.
        iteration: iterations behind the run; what TensorBoard has from later ones is overwritten.
    """

    def __init__(self, folder: Path, config: Config, console: LiveConsole, iteration: int) -> None:
        self._folder, self._config, self._console = folder, config, console
        self._rules = {rules.num_actions: rules for rules in config.game.sizes()}
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=iteration + 1)
        self._past: deque[tuple[float, Figures]] = deque()
        self._losses: dict[str, float] = {}
        self._recent: deque[Trajectory] = deque(maxlen=_RECENT)
        self._warnings: deque[str] = deque(maxlen=3)
        self._next_records = self._next_picture = 0.0
        self._told_dropped = self._told_restarts = 0
        self._mistaken: deque[bool] = deque(maxlen=_RESIGNATIONS)
        self._told_mistaken = self._told_run_off = False

    def close(self) -> None:
        """Write what is still to be written."""
        self._records()
        self._writer.close()

    def iteration(
        self, figures: Figures, games: Sequence[Trajectory], losses: Losses | None, ratings: Ratings | None
    ) -> None:
        """Show an iteration; `games` are those that ended in it. Drills are left out."""
        games = without_drills(games)
        now = time.monotonic()
        self._past.append((now, figures))
        while len(self._past) > 2 and now - self._past[0][0] > _RATES_OVER:
            self._past.popleft()
        self._recent.extend(g for g in games if not g.strayed.any())
        scalars = self._scalars(figures, games) | self._learnt(losses)
        newest = _models(ratings)[-1:]
        if newest:
            scalars |= {"elo/newest": newest[0][1], "elo/low": newest[0][2], "elo/high": newest[0][3]}
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, figures.iteration)
        self._warn(figures)
        if now >= self._next_records and self._recent:
            self._next_records = now + _RECORDS_EVERY
            self._records()
        if now >= self._next_picture and games:
            self._next_picture = now + _PICTURES_EVERY
            self._picture(games[-1], figures.iteration)
        self._console.update(self._status(figures, scalars, ratings))

    def truths(self, found: dict[str, float], iteration: int) -> None:
        """Show what the solver says of a model that entered the ratings; see `instruments.truths`."""
        for name, value in found.items():
            self._writer.add_scalar(f"truth/{name}", value, iteration)

    def _rate(self, name: str) -> float:
        """Growth of a count a second, over the last while."""
        (began, first), (ended, last) = self._past[0], self._past[-1]
        if ended <= began:
            return 0.0
        return float((getattr(last, name) - getattr(first, name)) / (ended - began))

    def _scalars(self, f: Figures, games: Sequence[Trajectory]) -> dict[str, float]:
        out = {
            "rates/games_per_second": self._rate("games"),
            "rates/samples_per_second": self._rate("samples"),
            "rates/plies_per_second": self._rate("plies"),
            "rates/evaluations_per_second": self._rate("evaluations"),
            "rates/samples_learnt_per_second": self._rate("samples_used"),
            "replay/samples": f.samples,
            "replay/window": f.window,
            "replay/mean_age_in_steps": f.age,
            "selfplay/games": f.games,
            "selfplay/games_dropped": f.games_dropped,
            "learner/steps": f.learner_steps,
            "learner/samples_used": f.samples_used,
            "disk/games_mb": f.disk_bytes / 1e6,
            "memory/driver_mb": f.memory_bytes / 1e6,
        }
        if f.workers_wanted:
            out |= {
                "memory/workers_mb": f.worker_bytes / 1e6,
                "workers/alive": f.workers_alive,
                "workers/restarts": f.restarts,
                "workers/queue": f.queue,
                "workers/duplicate_games": f.duplicates,
            }
        if self._config.search.first_simulations:
            out["selfplay/simulations"] = simulations_at(self._config.search, f.learner_steps)
        if games:
            out["selfplay/plies_per_game"] = float(np.mean([len(g) + g.random_plies for g in games]))
            out |= self._targets(games)
            out |= self._resignations(games)
            out |= self._solved(games)
            own = [g for g in games if g.random_plies == 0 and not g.strayed.any()]
            if own:
                swaps = [(g.actions == self._rules_of(g).swap_action).any() for g in own]
                out["selfplay/first_seat_wins"] = float(np.mean([g.outcome > 0 for g in own]))
                out["selfplay/swap_share"] = float(np.mean(swaps))
        return out

    def _rules_of(self, game: Trajectory) -> Rules:
        return self._rules[game.policy_targets.shape[1]]

    def _targets(self, games: Sequence[Trajectory]) -> dict[str, float]:
        """What the policies are that are to be learnt."""
        sums, taught, plies = np.zeros(2), 0, 0
        for game in games:
            targets = game.policy_targets.astype(np.float32)
            full = targets.any(axis=1)
            sums[0] -= (targets * np.log(np.maximum(targets, 1e-30))).sum()
            sums[1] += game.surprise.astype(np.float32)[full].sum()
            taught, plies = taught + int(full.sum()), plies + len(game)
        out = {"selfplay/full_searches": taught / plies} if self._config.selfplay.full_search_share < 1 else {}
        if taught:
            out |= {"selfplay/target_entropy": float(sums[0]) / taught, "selfplay/surprise": float(sums[1]) / taught}
        return out

    def _resignations(self, games: Sequence[Trajectory]) -> dict[str, float]:
        """Share of games given up, and how often that would have been wrong in those that were played on."""
        if self._config.selfplay.resign_below <= -1:
            return {}
        told = [g for g in games if g.would_resign >= 0 and not g.strayed.any()]
        self._mistaken.extend(2 * g.would_resign - 1 != g.outcome for g in told)
        out = {"selfplay/resigned": float(np.mean([g.resigned >= 0 for g in games]))}
        if self._mistaken:
            out["selfplay/resign_false_positives"] = float(np.mean(self._mistaken))
        return out

    def _solved(self, games: Sequence[Trajectory]) -> dict[str, float]:
        """Share of the plies that were solved, and of the games whose outcome was not what the first of them says."""
        plies = sum(int((g.solved != 0).sum()) for g in games)
        if not plies:
            return {}
        out = {"selfplay/solved_share": plies / sum(map(len, games))}
        played = [g for g in games if g.solved.any() and not g.strayed.any()]
        if played:
            wrong = [winners(g)[np.flatnonzero(g.solved)[0]] != g.outcome for g in played]
            out["selfplay/outcome_not_solved_value"] = float(np.mean(wrong))
        return out

    def _learnt(self, losses: Losses | None) -> dict[str, float]:
        if losses is None:
            return {}
        self._losses = {"loss/policy": losses.policy, "loss/value": losses.value}
        extra = {
            "loss/policy_target_entropy": losses.target_entropy,
            "loss/policy_divergence": losses.policy - losses.target_entropy,
            "loss/z": losses.z,
            "learner/grad_norm": losses.grad_norm,
        }
        if losses.z > _RUN_OFF and not self._told_run_off:
            self._told_run_off = True
            self.warn(f"the policy's log-probabilities run off (z-loss {losses.z:.3g}): raise learner.z_weight")
        return self._losses | extra | {f"loss/{name}": value for name, value in losses.auxiliary.items()}

    def _warn(self, f: Figures) -> None:
        if f.games_dropped > self._told_dropped:
            self._told_dropped = f.games_dropped
            self.warn(f"{f.games_dropped} games reached the ply cap and were dropped")
        if f.restarts > self._told_restarts:
            self._told_restarts = f.restarts
            self.warn(f"{f.restarts} workers died and were replaced")
        wrong, count = sum(self._mistaken), len(self._mistaken)
        if count >= _ENOUGH_RESIGNATIONS and wrong > _WRONG_RESIGNATIONS * count and not self._told_mistaken:
            self._told_mistaken = True
            self.warn(
                f"whoever would have resigned won {wrong} of {count} games played on: lower selfplay.resign_below"
            )

    def warn(self, line: str) -> None:
        """Tell a person of something that went wrong."""
        self._warnings.append(line)
        self._console.message(f"warning: {line}")

    def _status(self, f: Figures, scalars: dict[str, float], ratings: Ratings | None) -> Status:
        steps_an_iteration = max(1e-9, f.learner_steps / max(1, f.iteration))
        return Status(
            iteration=f.iteration,
            games=f.games,
            samples=f.samples,
            learner_steps=f.learner_steps,
            elapsed=f.elapsed,
            seconds_left=f.seconds_left,
            games_per_second=scalars["rates/games_per_second"],
            evaluations_per_second=scalars["rates/evaluations_per_second"],
            samples_learnt_per_second=scalars["rates/samples_learnt_per_second"],
            losses=self._losses,
            workers_alive=f.workers_alive,
            workers_wanted=f.workers_wanted,
            restarts=f.restarts,
            queue=f.queue,
            buffer_age=f.age / steps_an_iteration,
            memory_mb=(f.memory_bytes + f.worker_bytes) / 1e6,
            ratings=tuple(_models(ratings)),
            warnings=tuple(self._warnings),
            resignations=(sum(self._mistaken), len(self._mistaken)) if self._mistaken else None,
        )

    def _records(self) -> None:
        if self._recent:
            search = self._config.search
            games = (record_of(g, self._rules_of(g), simulations_at(search, g.version)) for g in self._recent)
            write_records(self._folder / RECENT_FILE, games)

    def _picture(self, game: Trajectory, iteration: int) -> None:
        position = decode_state(game.states[0], self._rules_of(game))
        positions: list[Position] = [position]
        lasts: list[int | None] = [None]
        for action in game.actions:
            position = position.play(int(action))
            positions.append(position)
            lasts.append(int(action))
        self._writer.add_image("games/sample", game_picture(positions, lasts), iteration, dataformats="HWC")


def _models(ratings: Ratings | None) -> list[tuple[str, float, float, float]]:
    """The rated models of a run, oldest first: name, Elo, ends of the interval."""
    players = ratings.players if ratings else {}
    return [(n, r.elo, r.low, r.high) for n, r in sorted(players.items()) if n.startswith("iteration-")]


def elo_curve(ratings: Ratings, entered: dict[str, float], title: str) -> bytes:
    """The curve of a run's ratings as a PNG.

    Args:
        entered: seconds of training at which each model entered the ratings.
    """
    points = [(entered[name], elo, low, high) for name, elo, low, high in _models(ratings) if name in entered]
    baselines = {n: r.elo for n, r in ratings.players.items() if not n.startswith("iteration-")}
    return elo_curve_png(sorted(points), baselines, title)
