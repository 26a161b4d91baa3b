"""The command that shows a board in the browser."""

from __future__ import annotations

import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from lifeline.errors import MissingExtraError, ModelError

_SHIPPED = Path("checkpoints")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="An exported model to play by; may be given several times. If not given, those in checkpoints/; if "
            "there are none, a bot that judges by random games."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes any that is free.")] = 8000,
    simulations: Annotated[int, typer.Option(min=2, max=10_000, help="For each move of a bot at full strength.")] = 400,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Bots that think at the same time.")] = 1,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
) -> None:
    """Play in the browser: serve a page with the board, until Ctrl-C. See docs/play.md."""
    try:
        from lifeline.play.server import Server, Settings
        from lifeline.play.server_guard import LOOPBACK
        from lifeline.play.server_run import listen, uvicorn_server
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("starlette", "uvicorn"):
            raise
        raise MissingExtraError("lifeline serve", missing, "web") from None
    from lifeline.play.server_bots import load_bots

    bots = load_bots(_shipped() if model is None else model)
    settings = Settings(simulations=simulations, threads=threads)
    connection = listen(host, port)
    server = Server(bots, settings, LOOPBACK if host in _LOOPBACK else None)
    slow = threading.Timer(4.0, typer.echo, ["compiling for the first time, which takes a minute or so"], {"err": True})
    slow.daemon = True
    slow.start()
    server.warm_up(bots[0].bases[0] if bots[0].bases else 5)
    slow.cancel()
    shown = f"[{host}]" if ":" in host else {"0.0.0.0": "127.0.0.1"}.get(host, host)
    address = f"http://{shown}:{connection.getsockname()[1]}/"
    typer.echo(f"Lifeline is at {address} with {', '.join(bot.id for bot in bots)}; Ctrl-C ends it")
    sys.stdout.flush()  # whoever started this through a pipe waits for the address
    if open_:
        webbrowser.open(address)
    try:
        uvicorn_server(server).run(sockets=[connection])
    finally:
        server.close()


def _shipped() -> list[Path]:
    """The models that come with the project, as far as this version reads them."""
    from lifeline.model_file import load_model

    found = []
    for path in sorted(_SHIPPED.glob("*.onnx")):
        try:
            load_model(path)
        except ModelError as error:
            typer.echo(f"left out: {error}", err=True)
        else:
            found.append(path)
    return found
