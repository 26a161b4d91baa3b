"""A board in the browser: an HTTP server that knows the rules and asks bots. It keeps no games: pages hold them.

A game is its rules and plies. A page sends both with every question, so that a server may be started anew, a page
reloaded, and a link sent, at any time. docs/play.md has the questions.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lifeline.board import MAX_BASE, MIN_BASE
from lifeline.errors import BusyError, ConfigError, LifelineError, RequestError
from lifeline.notation import action_text
from lifeline.play.engine import Analysis
from lifeline.play.levels import LEVELS, level_of
from lifeline.play.server_bots import Bot
from lifeline.play.server_guard import LOOPBACK, Allowance, Guard, Meter, answer, refusal
from lifeline.play.server_pages import load_pages
from lifeline.play.server_pool import Client, Limits, Pool, Question
from lifeline.play.server_queries import (
    ExportQuery,
    GameQuery,
    ImportQuery,
    KomiQuery,
    ThinkQuery,
    ValuesQuery,
    parse_query,
)
from lifeline.play.server_records import exported, imported
from lifeline.play.server_view import board_data, game_data, replay, steps, turn_colour
from lifeline.rules import OPENINGS, Position, Rules
from lifeline.version import __version__

_BASES = range(MIN_BASE, MAX_BASE + 1)

Q = TypeVar("Q", bound=BaseModel)

# Of an analysis, times the simulations of a move; moves and plies that are told of it.
_MOST_TIMES = 8
_MOVES_TOLD, _LINE_TOLD = 24, 16
_LEAST_SHARE = 0.0005
_ANSWER_SECONDS = 120.0
# One board of each size that kernels are compiled for.
_KERNEL_BASES = (3, 5, 6, 8)
# Of work a second of one page; see `Allowance`.
_PLIES_A_UNIT, _CHARACTERS_A_UNIT = 40, 10_000
_IMPORT_UNITS = 5


@dataclass(frozen=True)
class Settings:
    """What a server offers and takes.

    Attributes:
        simulations: of a bot's move at full strength, at least 2.
        threads: bots that think at once, at least 1.
        allowance: what requests are let through.
        limits: how many questions may wait for bots.

    Raises:
        ConfigError: a number out of range.
    """

    simulations: int = 400
    threads: int = 1
    allowance: Allowance = field(default_factory=Allowance)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 2 <= self.simulations <= 10_000:
            raise ConfigError(f"simulations of a move are 2 to 10000, not {self.simulations}")
        if not 1 <= self.threads <= 256:
            raise ConfigError(f"threads are 1 to 256, not {self.threads}")


class Server:
    """The answers to all requests.

    Args:
        bots: who is offered, the one offered first in front.
        settings: what is offered and taken.
        hosts: see `Guard`; the names of this machine as itself sees it if not given.

    Attributes:
        app: the application, for an ASGI server.
    """

    def __init__(
        self, bots: Sequence[Bot], settings: Settings | None = None, hosts: Collection[str] | None = LOOPBACK
    ) -> None:
        self._settings = settings or Settings()
        self._bots = {bot.id: bot for bot in bots}
        self._pages = load_pages()
        self._pool = Pool(bots, self._settings.threads, self._settings.limits)
        self._meter = Meter(self._settings.allowance)
        routes = [
            *(Route(path, self._page, methods=["GET"]) for path in self._pages),
            Route("/api/info", self._info, methods=["GET"]),
            *(Route(f"/api/board/{base}", self._board(base), methods=["GET"]) for base in _BASES),
            self._question("/api/game", GameQuery, self._game),
            self._question("/api/move", ThinkQuery, self._move),
            self._question("/api/analyse", ThinkQuery, self._analyse),
            self._question("/api/values", ValuesQuery, self._values),
            self._question("/api/komi", KomiQuery, self._komi),
            self._question("/api/side", KomiQuery, self._side),
            self._question("/api/import", ImportQuery, self._import),
            self._question("/api/export", ExportQuery, self._export),
        ]

        async def refuse(request: Request, error: Exception) -> Response:
            return refusal(error)

        inner = Starlette(
            routes=routes, exception_handlers={HTTPException: refuse, LifelineError: refuse, Exception: refuse}
        )
        self.app: ASGIApp = Guard(inner, self._settings.allowance, self._meter, hosts, {"/api/import"})

    def warm_up(self, base: int) -> None:
        """Load, or the first time compile, what the first game on a board would else wait for.

        Returns when the one board is ready; the others follow while it is played on.
        """

        def load(some: int) -> None:
            rules = Rules(some)
            game_data(replay(rules, None, []), 0)
            start = (Position.start(rules),)
            for bot in self._bots:
                with contextlib.suppress(LifelineError):  # whoever asks that bot will be told
                    self._pool.ask(Client("here"), Question(bot, rules, "analyse", start, simulations=2)).result()

        def load_others() -> None:
            for other in _KERNEL_BASES:
                load(other)

        load(base)
        threading.Thread(target=load_others, daemon=True, name="warm-up").start()

    @property
    def waiting(self) -> int:
        """Questions that wait for bots now."""
        return self._pool.waiting

    def close(self) -> None:
        """End the threads."""
        self._pool.close()

    def _question(self, path: str, kind: type[Q], handler: Callable[[Request, Q], Awaitable[Any]]) -> Route:
        """A route whose requests bring a query of JSON and are answered by JSON."""

        async def endpoint(request: Request) -> Response:
            # What other pages can send without asking for leave is no JSON.
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise HTTPException(415, "a question is application/json")
            body = await request.body()
            query = await run_in_threadpool(parse_query, kind, body)
            self._charge(request, len(body) // _CHARACTERS_A_UNIT + len(getattr(query, "moves", ())) // _PLIES_A_UNIT)
            return answer(await handler(request, query))

        return Route(path, endpoint, methods=["POST"])

    def _charge(self, request: Request, units: int) -> None:
        if units:
            self._meter.charge(request.state.client, units)

    async def _page(self, request: Request) -> Response:
        page = self._pages[request.url.path]
        headers = {"ETag": page.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == page.tag:
            return Response(status_code=304, headers=headers)
        return Response(page.body, headers=headers, media_type=page.kind)

    async def _info(self, request: Request) -> Response:
        return answer(
            {
                "version": __version__,
                "bots": [
                    {"id": b.id, "description": b.description, "bases": b.bases, "is_model": b.is_model}
                    for b in self._bots.values()
                ],
                "levels": [level.name for level in LEVELS],
                "simulations": self._settings.simulations,
                "most_simulations": _MOST_TIMES * self._settings.simulations,
                "bases": list(_BASES),
                "openings": OPENINGS,
            }
        )

    def _board(self, base: int) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            return answer(board_data(base))

        return endpoint

    async def _game(self, request: Request, query: GameQuery) -> dict[str, Any]:
        def told() -> dict[str, Any]:
            return game_data(*query.game())

        return await run_in_threadpool(told)

    async def _move(self, request: Request, query: ThinkQuery) -> dict[str, Any]:
        position = await self._running(query)
        level = level_of(query.level)
        [action] = await self._asked(
            request,
            self._of(query, position.rules, "choose", (position,), self._settings.simulations, level=level),
        )
        return {"move": action_text(action, position.rules.board)}

    async def _analyse(self, request: Request, query: ThinkQuery) -> dict[str, Any]:
        position = await self._running(query)
        count = self._settings.simulations if query.simulations is None else query.simulations
        if count == 1 or count > _MOST_TIMES * self._settings.simulations:
            raise RequestError(f"simulations are 0 or 2 to {_MOST_TIMES * self._settings.simulations}, not {count}")
        [analysis] = await self._asked(request, self._of(query, position.rules, "analyse", (position,), count))
        return _analysis_data(analysis)

    async def _values(self, request: Request, query: ValuesQuery) -> dict[str, Any]:
        game, _ = await run_in_threadpool(query.game)
        if max(query.plies) > len(game.actions):
            raise RequestError(f"the game has {len(game.actions)} plies, and no position after {max(query.plies)}")
        positions = [game.position(ply) for ply in query.plies]
        running = tuple(position for position in positions if not position.is_over)
        found = iter(await self._asked(request, self._of(query, game.rules, "analyse", running, 0)) if running else ())
        return {
            "first": [float(p.winner == 0) if p.is_over else _first(p, next(found).value) for p in positions],
        }

    async def _komi(self, request: Request, query: KomiQuery) -> dict[str, Any]:
        rules = query.rules()
        _check_komi_pie(rules)
        choice = await self._asked(request, self._of(query, rules, "name_komi", (), self._settings.simulations))
        return {"komi": choice.komi, "black": (1 + choice.value) / 2}

    async def _side(self, request: Request, query: KomiQuery) -> dict[str, Any]:
        rules = query.rules()
        _check_komi_pie(rules)
        colour, value = await self._asked(request, self._of(query, rules, "take_side", (), self._settings.simulations))
        return {"colour": "black" if colour == "b" else "white", "black": (1 + value) / 2}

    async def _import(self, request: Request, query: ImportQuery) -> dict[str, Any]:
        self._charge(request, _IMPORT_UNITS)
        return await run_in_threadpool(imported, query)

    async def _export(self, request: Request, query: ExportQuery) -> dict[str, Any]:
        return await run_in_threadpool(exported, query)

    async def _running(self, query: GameQuery) -> Position:
        """The position a query means, of a game that goes on."""
        game, at = await run_in_threadpool(query.game)
        position = game.position(at)
        if position.is_over:
            raise RequestError(f"the game is over: {position.text()}")
        return position

    def _of(self, query: Any, rules: Rules, kind: str, positions: tuple[Position, ...], count: int, **more: Any) -> Any:
        """The question that a query puts to its bot."""
        if query.model not in self._bots:
            raise RequestError(f"no bot {query.model!r} here; there are {', '.join(self._bots)}")
        return Question(query.model, rules, kind, positions, getattr(query, "seed", 0), count, **more)

    async def _asked(self, request: Request, question: Question) -> Any:
        """The answer of a bot, or nothing more than the question taken back where the client has gone."""
        told = self._pool.ask(request.state.client, question)
        waiting, gone = asyncio.wrap_future(told), asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({waiting, gone}, timeout=_ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
        finally:
            gone.cancel()
            told.abandon()
        raise BusyError("the bot did not answer in time")


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _check_komi_pie(rules: Rules) -> None:
    if rules.opening != "komi_pie":
        raise RequestError(f"a komi is named in komi_pie, not in {rules.opening}")


def _first(position: Position, value: float) -> float:
    """The probability that seat 0 wins, of a value for the player to move."""
    share = (1 + value) / 2
    return round(share if position.to_play == 0 else 1 - share, 4)


def _analysis_data(analysis: Analysis) -> dict[str, Any]:
    """An analysis as data for JSON; what stands in place of values is the probability that the player to move wins."""
    geometry = analysis.position.rules.board

    def win(value: float) -> float:
        return round((1 + value) / 2, 4)

    return {
        "first": _first(analysis.position, analysis.value),
        "win": win(analysis.value),
        "simulations": analysis.simulations,
        "solved": analysis.solved,
        "best": action_text(analysis.best, geometry),
        "moves": [
            {
                "move": action_text(move.action, geometry),
                "visits": move.visits,
                "win": win(move.value),
                "prior": round(move.prior, 4),
                "line": [
                    {"move": action_text(action, geometry), "colour": turn_colour(turn)}
                    for action, (turn, _) in zip(move.pv[:_LINE_TOLD], steps(analysis.position, move.pv), strict=False)
                ],
            }
            for move in analysis.moves[:_MOVES_TOLD]
        ],
        "policy": {
            action_text(action, geometry): round(float(share), 4)
            for action, share in enumerate(analysis.policy)
            if share >= _LEAST_SHARE
        },
    }
