"""The `lifeline` command: puts the commands together, and turns what goes wrong into one line."""

from __future__ import annotations

import sys

import typer

from lifeline.commands import analyze, arena, bench, game, gtp, models, records, serve, training
from lifeline.errors import LifelineError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Lifeline: train bots by self-play, and play against them.",
)
for command in (
    game.perft,
    game.play,
    game.show,
    game.solve,
    gtp.gtp,
    analyze.analyze,
    serve.serve,
    training.train,
    training.pack,
    training.runs,
    models.export,
    records.records,
    arena.tournament,
    arena.book,
):
    app.command()(command)

bench_app = typer.Typer(no_args_is_help=True, help="Measure how fast this machine is at the game.")
for measurement in (bench.engine, bench.search, bench.selfplay, bench.learner):
    bench_app.command()(measurement)
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Entry point: what goes wrong on purpose ends in one line and a non-zero exit code."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except LifelineError as error:
        _fail(str(error), 1)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except Exception as error:
        # Wrong options. Typer and the click of older versions have no common base: known by what they can do.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        _fail(message(), 2)


def _fail(message: str, code: int) -> None:
    if message:  # empty where help has been printed instead
        typer.echo(f"lifeline: {' '.join(message.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
