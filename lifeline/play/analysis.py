"""The analysis engine: many positions searched in batches, for other programs. See docs/analysis.md."""

from __future__ import annotations

import json
import sys
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, BinaryIO

from lifeline.errors import LifelineError
from lifeline.notation import action_text
from lifeline.play.analysis_queries import Action, Query, QueryError, read_line
from lifeline.play.engine import Analysis, Engine, EngineSettings
from lifeline.play.lines import LineReader
from lifeline.play.thinking import games_at_once
from lifeline.rules import Position, Rules
from lifeline.search.evaluator import Evaluator
from lifeline.version import __version__

# Positions that wait to be analysed; with more no further line is read until some are done.
_MOST_WAITING = 10_000
# Sets of rules whose memory is kept.
_ENGINES = 3

Answer = dict[str, Any]


@dataclass
class _Job:
    """A position that waits or is being searched."""

    query: Query
    turn: int
    position: Position
    ended: bool = False


class AnalysisService:
    """Takes lines, and searches what they ask for, batch by batch. Not to be shared between threads.

    Args:
        evaluator: judges positions.
        name: of the model, for who asks.
        simulations: of each search, where a query says nothing.
        most_simulations: that a query may ask for.
        batch: positions searched at once, at most; fewer where memory says so.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        name: str = "network",
        simulations: int = 64,
        most_simulations: int = 100_000,
        batch: int = 256,
    ) -> None:
        self._evaluator, self._name, self._batch = evaluator, name, batch
        self._simulations, self._most_simulations = simulations, most_simulations
        # By what can be searched together: rules but for the komi, and simulations. The group first in line comes next.
        self._groups: OrderedDict[tuple[Rules, int], deque[_Job]] = OrderedDict()
        self._running: list[_Job] = []
        self._engines: OrderedDict[Rules, Engine] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Positions that wait."""
        return sum(map(len, self._groups.values()))

    @property
    def full(self) -> bool:
        """Whether no line is to be taken before a batch is done."""
        return self.waiting >= _MOST_WAITING

    def take(self, line: bytes) -> list[Answer]:
        """Take a line in; what is to be said to it at once. Raises nothing.

        Args:
            line: without its newline, whatever is in it.
        """
        if not line.strip():
            return []
        try:
            asked = read_line(line, self._simulations, self._most_simulations)
        except QueryError as error:
            where = {} if error.field is None else {"field": error.field}
            return [{"id": error.id, "error": str(error), **where}]
        except Exception as error:  # a mistake in this program must cost one query
            return [_internal(None, error)]
        said: list[Answer] = [
            {"id": asked.id, "warning": f"unknown field {name[:60]!r}", "field": name[:60]} for name in asked.unknown
        ]
        if isinstance(asked, Action):
            return [*said, *self._act(asked)]
        for turn, position in asked.positions.items():
            if position.is_over:
                said.append(_answer_of_end(asked.id, turn, position))
                continue
            key = (replace(asked.rules, komi=0), asked.simulations)
            self._groups.setdefault(key, deque()).append(_Job(asked, turn, position))
        return said

    def _act(self, action: Action) -> list[Answer]:
        head: Answer = {"id": action.id, "action": action.name}
        if action.name == "query_version":
            return [{**head, "version": __version__, "model": self._name}]
        ended: list[_Job] = []
        for job in [*self._running, *(job for group in self._groups.values() for job in group)]:
            named = action.terminate_id is None or job.query.id == action.terminate_id
            if named and not job.ended and (action.turns is None or job.turn in action.turns):
                job.ended = True
                ended.append(job)
        for key, group in list(self._groups.items()):
            self._groups[key] = deque(job for job in group if not job.ended)
            if not self._groups[key]:
                del self._groups[key]
        whose = {} if action.terminate_id is None else {"terminate_id": action.terminate_id}
        return [
            *({"id": job.query.id, "turn": job.turn, "terminated": True} for job in ended),
            {**head, **whose, "terminated": len(ended)},
        ]

    def run(self, meanwhile: Callable[[], None]) -> list[Answer]:
        """Search a batch of what waits; the answers to it.

        Args:
            meanwhile: called again and again during the search; may call `take`.
        """
        key = next(iter(self._groups))
        (rules, simulations), group = key, self._groups[key]
        most = min(self._batch, games_at_once(rules, simulations))
        jobs = [group.popleft() for _ in range(min(most, len(group)))]
        del self._groups[key]
        if group:  # behind the others
            self._groups[key] = group
        self._running = jobs

        def stop() -> bool:
            meanwhile()
            return all(job.ended for job in jobs)

        try:
            positions, seeds = [job.position for job in jobs], [job.query.seed for job in jobs]
            analyses = self._engine(rules).analyse_many(positions, seeds, simulations, stop)
        except LifelineError as error:
            return [_failed(job, {"error": str(error)}) for job in jobs if not job.ended]
        except OSError:  # nobody hears the answers that `meanwhile` has for them
            raise
        except Exception as error:
            return [_failed(job, _internal(job.query.id, error)) for job in jobs if not job.ended]
        finally:
            self._running = []
        return [_answer(job, analysis) for job, analysis in zip(jobs, analyses, strict=True) if not job.ended]

    def _engine(self, rules: Rules) -> Engine:
        engine = self._engines.pop(rules, None) or Engine(rules, self._evaluator, EngineSettings())
        self._engines[rules] = engine
        while len(self._engines) > _ENGINES:
            self._engines.popitem(last=False)
        return engine


def serve(service: AnalysisService, reader: LineReader, out: BinaryIO) -> None:
    """Answer lines until they end and all is answered, or nobody is left to hear the answers.

    Args:
        reader: of lines of at most `MAX_QUERY` bytes.
        out: gets the answers.
    """
    at_end = False

    def say(answers: list[Answer]) -> None:
        if answers:
            out.write("".join(json.dumps(a, separators=(",", ":")) + "\n" for a in answers).encode())
            out.flush()

    def listen() -> None:
        nonlocal at_end
        while not at_end and not service.full and reader.arrived(0.0):
            line = reader.next()
            at_end = line is None
            say([] if line is None else service.take(line.encode("latin-1")))

    try:
        while service.waiting or not at_end:
            if not service.waiting:
                reader.arrived(3600.0)
            listen()
            if service.waiting:
                say(service.run(listen))
    except OSError:  # closed
        return


def _answer(job: _Job, analysis: Analysis) -> Answer:
    texts = _texts(job.query.rules.base)

    def shares(values: Any) -> dict[str, float]:
        return {texts[a]: round(v, 5) for a, v in enumerate(values.tolist()) if v > 0}

    answer: Answer = {
        "id": job.query.id,
        "turn": job.turn,
        "to_play": job.position.to_play,
        "value": round(analysis.value, 5),
        "simulations": analysis.simulations,
        "best": texts[analysis.best],
        "moves": [
            {
                "move": texts[m.action],
                "visits": m.visits,
                "value": round(m.value, 5),
                "prior": round(m.prior, 5),
                "pv": [texts[a] for a in m.pv],
            }
            for m in analysis.moves
        ],
        "policy": shares(analysis.policy),
        "solved": analysis.solved,
    }
    if job.query.prior:
        answer["prior"] = shares(analysis.prior)
    return answer


@lru_cache(maxsize=16)
def _texts(base: int) -> list[str]:
    """The move text of each action."""
    rules = Rules(base)
    return [action_text(a, rules.board) for a in range(rules.num_actions)]


def _answer_of_end(id_: str | int, turn: int, position: Position) -> Answer:
    """A finished game: who would be to play has lost."""
    return {
        "id": id_,
        "turn": turn,
        "to_play": position.to_play,
        "value": -1.0,
        "simulations": 0,
        "best": None,
        "moves": [],
        "policy": {},
        "solved": -1,
    }


def _failed(job: _Job, answer: Answer) -> Answer:
    return {"id": job.query.id, "turn": job.turn, **answer}


def _internal(id_: str | int | None, error: Exception) -> Answer:
    print(traceback.format_exc(), file=sys.stderr, flush=True)
    return {"id": id_, "error": f"internal error: {type(error).__name__}"}
