"""What stands before every request: who may ask, how much and how fast, and what browsers are told of the answers."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lifeline.errors import BusyError, LifelineError
from lifeline.play.server_pool import Client

log = logging.getLogger(__name__)

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PAGE_HEADER = "x-lifeline-page"
_MOST_PAGE = 40

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Allowance:
    """How much a server takes.

    Attributes:
        page_rate, address_rate: units of work a second that one page and one address may ask for in the long run; a
            request is one unit, and more where it is long.
        burst: so many seconds' worth may come at once.
        at_once: requests that are answered at the same time.
        body: bytes of a body; long_body: of one that brings a record.
        body_seconds: in which a body must have arrived.
    """

    page_rate: float = 40.0
    address_rate: float = 400.0
    burst: float = 3.0
    at_once: int = 400
    body: int = 65_536
    long_body: int = 2_500_000
    body_seconds: float = 15.0


class RateError(BusyError):
    """Somebody asks too fast."""


class Meter:
    """Counts work by page and by address: to each a bucket that fills steadily.

    Args:
        allowance: how fast, and how full it gets.
        most: buckets remembered; of more, those used longest ago are forgotten.
    """

    def __init__(self, allowance: Allowance, most: int = 20_000) -> None:
        self._allowance, self._most = allowance, most
        self._buckets: OrderedDict[Client, tuple[float, float]] = OrderedDict()

    def charge(self, client: Client, units: float) -> None:
        """Take units of work off what a client has left; it may run into debt, and is then refused until it is paid.

        Raises:
            RateError: nothing is left.
        """
        now, rates = time.monotonic(), self._allowance
        buckets = [(Client(client.address), rates.address_rate)]
        if client.page:
            buckets.append((client, rates.page_rate))
        for who, rate in buckets:
            left, since = self._buckets.pop(who, (rate * rates.burst, now))
            left = min(rate * rates.burst, left + rate * (now - since))
            refused = left <= 0
            self._buckets[who] = (left if refused else left - units, now)
            if refused:
                raise RateError("too many requests", max(1, round(1 - left / rate)))
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)


def answer(data: Any, status: int = 200, seconds: int | None = None) -> Response:
    """A response of JSON that is kept nowhere; `seconds` is after which to try again."""
    headers = {"Cache-Control": "no-store"}
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def refusal(error: Exception) -> Response:
    """The answer to a request that went wrong: one line of JSON, whatever it was."""
    if isinstance(error, RateError):
        return answer({"error": str(error)}, 429, error.seconds)
    if isinstance(error, BusyError):
        return answer({"error": str(error)}, 503, error.seconds)
    if isinstance(error, HTTPException):
        return answer({"error": str(error.detail)}, error.status_code)
    if isinstance(error, LifelineError):
        return answer({"error": " ".join(str(error).split())}, 400)
    log.error("a request failed: %r", error, exc_info=error)
    return answer({"error": "the server made a mistake"}, 500)


class Guard:
    """Lets requests through to an application that are allowed, whole and small; others it answers itself.

    The application finds a `Client` in the scope's state.

    Args:
        app: the application.
        allowance: how much is let through.
        meter: who has asked how much.
        hosts: names and addresses, without port, that requests may name as their host: a page elsewhere whose name
            leads here cannot ask then. None = any.
        long_paths: where long bodies are taken.
    """

    def __init__(
        self,
        app: ASGIApp,
        allowance: Allowance,
        meter: Meter,
        hosts: Collection[str] | None,
        long_paths: Collection[str],
    ) -> None:
        self._app, self._allowance, self._meter = app, allowance, meter
        self._hosts, self._long_paths = hosts, long_paths
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        self._running += 1
        try:
            inside = await self._admit(scope, receive)
            await self._app(scope, inside, send_with_headers)
        except Exception as error:
            if not begun:  # else the application has answered and told of it
                await refusal(error)(scope, receive, send_with_headers)
        finally:
            self._running -= 1

    async def _admit(self, scope: Scope, receive: Receive) -> Receive:
        """Look at a request before its turn; returns where its body can be had.

        Raises:
            HTTPException, BusyError: it is not let through.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if self._hosts is not None and name.lower() not in self._hosts:
            raise HTTPException(421, "this server answers only to the address it has printed")
        address = scope["client"][0] if scope.get("client") else ""
        client = Client(address, headers.get(PAGE_HEADER, "")[:_MOST_PAGE])
        scope.setdefault("state", {})["client"] = client
        self._meter.charge(client, 1)
        if self._running > self._allowance.at_once:
            raise BusyError("too many requests at once")
        most = self._allowance.long_body if scope["path"] in self._long_paths else self._allowance.body
        told = headers.get("content-length", "0")
        if not told.isdigit() or len(told) > 12 or int(told) > most:
            raise HTTPException(413, f"a request may have {most} bytes")
        try:
            async with asyncio.timeout(self._allowance.body_seconds):
                body = await _body(receive, most)
        except TimeoutError:
            raise HTTPException(408, "the request took too long to arrive") from None
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def inside() -> Message:
            return waiting.pop() if waiting else await receive()

        return inside


async def _body(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "the client has gone")
        body += message.get("body", b"")
        if len(body) > most:
            raise HTTPException(413, f"a request may have {most} bytes")
        if not message.get("more_body", False):
            return bytes(body)
