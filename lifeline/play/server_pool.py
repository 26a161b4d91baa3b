"""Thinking for many clients: threads with engines, and the questions that wait for them, taken in turn and together.

Whoever asks much waits for himself: addresses take turns, and the pages of an address among themselves. Questions that
can be searched together are. One that nobody waits for any more is dropped before it begins.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lifeline.env import BatchEnv
from lifeline.errors import BusyError, LifelineError
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.levels import Level
from lifeline.play.server_bots import Bot
from lifeline.play.thinking import games_at_once
from lifeline.rules import Position, Rules
from lifeline.streams import state_keys

log = logging.getLogger(__name__)

# Positions searched in one batch, and engines with their memory kept by a thread.
_BATCH = 32
_ENGINES = 4
_NICE = 5
_END_SECONDS = 5.0


@dataclass(frozen=True)
class Client:
    """Who asks.

    Attributes:
        address: where it is.
        page: what tells the pages of one address apart; they say it themselves.
    """

    address: str
    page: str = ""


@dataclass(frozen=True)
class Question:
    """What a bot is asked.

    Attributes:
        bot: its id.
        rules: what is played.
        kind: "analyse" or "choose" (of each of `positions`, running ones), "name_komi" or "take_side".
        positions: at least one, for the first two kinds.
        seed: of the game.
        simulations: of each search at full strength.
        level: of "choose".
    """

    bot: str
    rules: Rules
    kind: str
    positions: tuple[Position, ...] = ()
    seed: int = 0
    simulations: int = 0
    level: Level | None = None

    @property
    def batch_key(self) -> Hashable:
        """Equal for questions that can be answered together; None for one that stands alone."""
        if self.kind not in ("analyse", "choose"):
            return None
        return (self.bot, self.rules, self.kind, self.simulations, self.level)

    @property
    def most_together(self) -> int:
        """Positions that may be searched in one batch of such questions."""
        return max(1, min(_BATCH, games_at_once(self.rules, self.simulations) // _ENGINES))


@dataclass(frozen=True)
class Limits:
    """How much may wait.

    Attributes:
        waiting: questions in all; of_address, of_page: of one address, of one of its pages.
        seconds: for which a question waits at most.
    """

    waiting: int = 256
    of_address: int = 192
    of_page: int = 6
    seconds: float = 30.0


class Asked(Future[Any]):
    """What will hold the answer to a question.

    Attributes:
        abandoned: whether nobody waits for it any more.
    """

    abandoned = False

    def abandon(self) -> None:
        """Take the question back; one that is being thought about is left off soon, if those beside it are too."""
        self.abandoned = True
        self.cancel()


@dataclass
class _Job:
    client: Client
    question: Question
    answer: Asked = field(default_factory=Asked)
    asked: float = field(default_factory=time.monotonic)


class Pool:
    """Answers questions in threads of its own.

    Args:
        bots: who is asked.
        threads: how many think at once, at least 1.
        limits: how much may wait.

    Attributes:
        waiting: how many questions wait now.
    """

    def __init__(self, bots: Sequence[Bot], threads: int = 1, limits: Limits | None = None) -> None:
        self._bots = {bot.id: bot for bot in bots}
        self._limits = limits or Limits()
        # By address and page, those first that have waited longest for a turn; no empty ones.
        self._queues: OrderedDict[str, OrderedDict[str, deque[_Job]]] = OrderedDict()
        self.waiting = 0
        self._closed = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._work, daemon=True, name=f"bot-{n}") for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def ask(self, client: Client, question: Question) -> Asked:
        """Put a question.

        Returns:
            What will hold the answer: of "analyse" a list of `Analysis`, of "choose" one of actions, of "name_komi" a
            `KomiChoice`, of "take_side" a colour and the value for Black; or a LifelineError.

        Raises:
            BusyError: too much is waiting already.
        """
        job = _Job(client, question)
        with self._changed:
            pages = self._queues.get(client.address, OrderedDict())
            mine = pages.get(client.page, deque())
            if self._closed or len(mine) >= self._limits.of_page:
                raise BusyError(f"{len(mine)} questions of this page are waiting already")
            if self.waiting >= self._limits.waiting or sum(map(len, pages.values())) >= self._limits.of_address:
                raise BusyError(f"the bots are busy: {self.waiting} questions are waiting")
            self._queues.setdefault(client.address, pages).setdefault(client.page, mine).append(job)
            self.waiting += 1
            self._changed.notify()
        return job.answer

    def close(self) -> None:
        """Answer nothing any more; threads end after what they are at, or with the process."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_END_SECONDS)

    def _next(self) -> _Job | None:
        """Take the job whose turn it is out of the queues; None where none waits."""
        if not self._queues:
            return None
        address, pages = self._queues.popitem(last=False)
        page, jobs = pages.popitem(last=False)
        job = jobs.popleft()
        self.waiting -= 1
        if jobs:
            pages[page] = jobs
        if pages:
            self._queues[address] = pages
        return job

    def _alike(self, key: Hashable, room: int) -> list[_Job]:
        """Take further jobs of a batch key out of the queues: the first one of each page, as far as there is room."""
        found: list[_Job] = []
        for address, pages in list(self._queues.items()):
            for page, jobs in list(pages.items()):
                size = len(jobs[0].question.positions)
                if size > room or jobs[0].question.batch_key != key:
                    continue
                found.append(jobs.popleft())
                room -= size
                if not jobs:
                    del pages[page]
            if not pages:
                del self._queues[address]
        self.waiting -= len(found)
        return found

    def _batch(self) -> list[_Job] | None:
        """Wait for jobs that are answered together; None when closed. Those that waited too long are answered so."""
        with self._changed:
            while not self._closed:
                job = self._next()
                if job is None:
                    self._changed.wait()
                    continue
                jobs, key = [job], job.question.batch_key
                if key is not None:
                    jobs += self._alike(key, job.question.most_together - len(job.question.positions))
                late = time.monotonic() - self._limits.seconds
                running = [job for job in jobs if job.answer.set_running_or_notify_cancel()]
                for job in running:
                    if job.asked < late:
                        job.answer.set_exception(BusyError("the bots are busy: the question waited too long"))
                if kept := [job for job in running if job.asked >= late]:
                    return kept
        return None

    def _work(self) -> None:
        if sys.platform == "linux":  # where threads have priorities of their own: pages are answered before bots think
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        engines: OrderedDict[Hashable, Engine] = OrderedDict()
        while (jobs := self._batch()) is not None:
            question = jobs[0].question
            key = (question.bot, question.rules, question.level, question.kind == "choose" and question.simulations)
            try:
                engine = engines.pop(key, None) or self._engine(question)
                engines[key] = engine
                while len(engines) > _ENGINES:
                    engines.popitem(last=False)
                answers = _answers(engine, jobs)
            except Exception as error:
                if not isinstance(error, LifelineError):
                    log.exception("a bot failed")
                for job in jobs:
                    job.answer.set_exception(error)
            else:
                for job, answer in zip(jobs, answers, strict=True):
                    job.answer.set_result(answer)

    def _engine(self, question: Question) -> Engine:
        evaluator = self._bots[question.bot].evaluator(question.rules)
        settings = EngineSettings()
        if question.level is not None:
            settings = EngineSettings(simulations=question.simulations, level=question.level.name)
        return Engine(question.rules, evaluator, settings)


def _answers(engine: Engine, jobs: list[_Job]) -> list[Any]:
    """The answers to questions of one batch key."""
    first = jobs[0].question
    if first.kind == "name_komi":
        return [engine.named_komi(simulations=first.simulations, seed=first.seed)]
    if first.kind == "take_side":
        return [engine.better_side(first.simulations, first.seed)]
    positions = [position for job in jobs for position in job.question.positions]
    seeds = [job.question.seed for job in jobs for _ in job.question.positions]
    if first.kind == "choose":
        env = BatchEnv(first.rules, len(positions))
        env.reset(positions=positions)
        found = engine.actions(env, state_keys(np.array(seeds, np.uint64), env.gather())).tolist()
    else:
        found = engine.analyse_many(
            positions, seeds, first.simulations, stop=lambda: all(job.answer.abandoned for job in jobs)
        )
    answers, at = [], 0
    for job in jobs:
        answers.append(found[at : at + len(job.question.positions)])
        at += len(job.question.positions)
    return answers
