"""How the server listens: on one socket, with little patience for clients that send nothing."""

from __future__ import annotations

import asyncio
import os
import socket

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lifeline.errors import LifelineError
from lifeline.play.server import Server


class _Impatient(H11Protocol):
    """A connection that is closed where the head of a request does not arrive."""

    _SECONDS = 20.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Head and body of an answer are two writes; the second is not to wait until the first has been acknowledged.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._calm()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._calm()
        elif self._patience is None:
            self._patience = self.loop.call_later(self._SECONDS, self._close_if_waiting)

    def _calm(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _close_if_waiting(self) -> None:
        self._patience = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket for `run`; port 0 is any free one.

    Raises:
        LifelineError: there is no such address, or the port is taken.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0  # those of unknown names are below zero
        why = os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)
        raise LifelineError(f"cannot listen at {host}, port {port}: {why}") from None


def uvicorn_server(server: Server) -> uvicorn.Server:
    """What serves a server's pages: `run(sockets=[listen(...)])`, until a signal or `should_exit`."""
    return uvicorn.Server(
        uvicorn.Config(
            server.app,
            http=_Impatient,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=1_000,
            h11_max_incomplete_event_size=16_384,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=2,
        )
    )
