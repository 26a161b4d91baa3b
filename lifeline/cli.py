"""The `lifeline` command."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from lifeline.errors import LifelineError, RecordError, RunError
from lifeline.rules import Position, Rules

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Lifeline: train bots by self-play, and play against them.",
)

bench = typer.Typer(no_args_is_help=True, help="Measure how fast this machine is at the game.")
app.add_typer(bench, name="bench")

BaseOption = Annotated[int, typer.Option(help="Cells a side of the board, 3 to 12.")]
OpeningOption = Annotated[str, typer.Option(help="strong_pie, weak_pie or komi_pie.")]

# The same where it must be known whether they have been given: records say themselves what was played.
GivenBase = Annotated[int | None, typer.Option(help="Cells a side of the board, 3 to 12; 3 if not given.")]
GivenOpening = Annotated[str | None, typer.Option(help="strong_pie, weak_pie or komi_pie; strong_pie if not given.")]
GivenKomi = Annotated[int | None, typer.Option(help="Points of komi at the start, 0 to 99; komi_pie only.")]
GivenAdjacent = Annotated[
    str | None, typer.Option(help="allowed (if not given) or forbidden; weak_pie and komi_pie only.")
]
MovesOption = Annotated[
    str | None, typer.Option(help='The position after these moves, such as "c4,e2 swap d4,b3"; "" is the start.')
]
PositionOption = Annotated[str | None, typer.Option(help='A position text, such as "3/4/5/4/3 b 0 0 - 0".')]


@app.command()
def perft(
    base: BaseOption = 3,
    turns: Annotated[int, typer.Option(min=0, max=40, help="Turns to count; a first turn's two stones are one.")] = 3,
    opening: OpeningOption = "strong_pie",
    adjacent_setup: Annotated[str, typer.Option(help="allowed or forbidden; weak_pie and komi_pie.")] = "allowed",
) -> None:
    """Count the sequences of legal turns from the start, without swap or komi."""
    from lifeline import kernels

    start = Position.start(Rules(base, opening, adjacent_setup=adjacent_setup))
    for depth in range(1, turns + 1):
        began = time.perf_counter()
        count = kernels.perft(start, depth)
        typer.echo(f"{depth:3d} {count:16d} {time.perf_counter() - began:9.2f} s")


@app.command()
def play(
    base: BaseOption = 3,
    opening: OpeningOption = "strong_pie",
    model: Annotated[
        Path | None, typer.Option(help="Play against this exported model, such as runs/NAME/bot.onnx.")
    ] = None,
    opponent: Annotated[str, typer.Option(help="Without a model: random, or rollout:N.")] = "rollout:1000",
    simulations: Annotated[int, typer.Option(min=2, max=100_000, help="For each move of the model.")] = 64,
    seat: Annotated[int, typer.Option(min=0, max=1, help="Yours: 0 begins as Black, 1 may swap.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the opponent.")] = None,
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw stones as X and O.")] = False,
) -> None:
    """Play against a bot in the terminal."""
    import numpy as np

    from lifeline.play.players import make_player
    from lifeline.play.terminal import play_in_terminal

    rules = Rules(base, opening)
    player = make_player(str(model) if model else opponent, rules, simulations)
    play_in_terminal(rules, player, seat, np.random.default_rng(seed), input, typer.echo, ascii_)


@app.command()
def show(
    base: GivenBase = None,
    opening: GivenOpening = None,
    komi: GivenKomi = None,
    adjacent_setup: GivenAdjacent = None,
    moves: MovesOption = None,
    position: PositionOption = None,
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="A position of a file of game records; - is the input.")
    ] = None,
    game: Annotated[int | None, typer.Option(min=1, help="Which game of the record, from 1; 1 if not given.")] = None,
    turn: Annotated[
        int | None, typer.Option(min=0, help="After so many turns of the game, and the swap after them; else its end.")
    ] = None,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw into this SVG file; - is the output.")] = None,
    labels: Annotated[bool, typer.Option("--labels", help="With --svg: write its label in each cell.")] = False,
    legal: Annotated[bool, typer.Option("--legal", help="With --svg: mark where a stone may be placed.")] = False,
    heat: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --svg: colour cells by the numbers from 0 to 1 of a JSON file, an object by label, "
            "or a list of one for each cell, rows from the top.",
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print position, legal moves, groups, regions and result as JSON.")
    ] = False,
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw stones as X and O.")] = False,
) -> None:
    """Show a position: as text, as an SVG picture, or as data.

    It is given by exactly one of --moves, --position and --record.
    """
    from lifeline.files import write_atomic
    from lifeline.render import board_text
    from lifeline.show import coloured, describe, of_moves, of_position, of_record, read_heat
    from lifeline.svg import board_svg

    _exactly_one(moves=moves, position=position, record=record)
    if record is not None and _given(base, opening, komi, adjacent_setup):
        raise typer.BadParameter("records say themselves what was played: no --base and so on with --record")
    if record is None and (game, turn) != (None, None):
        raise typer.BadParameter("--game and --turn go with --record")
    if svg is None and (labels or legal or heat is not None):
        raise typer.BadParameter("--labels, --legal and --heat go with --svg")
    if svg is not None and ascii_:
        raise typer.BadParameter("--ascii is of the drawing as text: not with --svg")
    if json_ and (svg == "-" or ascii_):
        raise typer.BadParameter(f"--json prints data: not with {'--ascii' if ascii_ else '--svg -'}")
    if record is not None:
        shown = of_record(sys.stdin.buffer if record == "-" else record, game or 1, turn)
    else:
        rules = _rules(base, opening, komi, adjacent_setup)
        shown = of_moves(moves, rules) if moves is not None else of_position(Position.parse(position or "", rules))
    if svg is not None:
        values = None if heat is None else read_heat(heat, shown.position.rules.board)
        picture = board_svg(shown.position, last=shown.last, labels=labels, heat=values, legal=legal)
        if svg == "-":
            typer.echo(picture, nl=False)
        else:
            try:
                write_atomic(Path(svg), picture.encode())
            except OSError as error:
                raise LifelineError(f"{svg}: cannot be written: {error.strerror or error}") from None
    if json_:
        typer.echo(json.dumps(describe(shown)))
    elif svg is None:
        drawn = board_text(shown.position, ascii=ascii_, last=shown.last[-1] if shown.last else None)
        typer.echo(coloured(drawn) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else drawn)
        if shown.winner is not None and not shown.position.is_over:
            typer.echo(f"the record: seat {shown.winner} has won, {shown.reason}")
    elif svg != "-":
        typer.echo(svg)


@app.command()
def solve(
    base: GivenBase = None,
    opening: GivenOpening = None,
    komi: GivenKomi = None,
    adjacent_setup: GivenAdjacent = None,
    moves: MovesOption = None,
    position: PositionOption = None,
    openings: Annotated[
        bool, typer.Option("--openings", help="Solve all first turns of Black, without swap, and count who wins.")
    ] = False,
    nodes: Annotated[int | None, typer.Option(min=1, help="Stop after searching so many positions.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.01, help="Stop after so many seconds.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the exact value of a position and its winning moves. Ctrl-C ends it with what is known by then.

    The position is given by exactly one of --moves and --position, or it is each after a first turn: --openings.
    """
    from lifeline import kernels
    from lifeline.answers import (
        first_turns_data,
        first_turns_text,
        progress_line,
        solution_data,
        solution_text,
        stop_on_ctrl_c,
    )
    from lifeline.show import of_moves
    from lifeline.solver import FirstTurns, Solver

    _exactly_one(moves=moves, position=position, openings=openings or None)
    rules = _rules(base, opening, komi, adjacent_setup)
    start = of_moves(moves or "", rules).position if position is None else Position.parse(position, rules)
    solver, total = Solver(rules, table_bits=22), kernels.perft(start, 1) if openings else 0
    told, live = 0.0, sys.stderr.isatty()
    solver.value(kernels.encode_position(start), max_nodes=1)  # kernels are loaded or compiled before the clock runs

    def progress(found: FirstTurns) -> None:
        nonlocal told
        if found.seconds - told >= (0.1 if live else 5):
            told, line = found.seconds, progress_line(total, found)
            typer.echo(f"\r{line}\x1b[K" if live else line, nl=not live, err=True)

    with stop_on_ctrl_c() as stop:
        if live:
            typer.echo("solving; Ctrl-C ends it with what is known by then", err=True)
        if openings:
            result = solver.solve_first_turns(nodes, seconds, stop.is_set, progress)
            data, text = first_turns_data(rules, total, result), first_turns_text(rules, total, result)
        else:
            solution = solver.solve(start, nodes, seconds, stop.is_set)
            data, text = solution_data(start, solution), solution_text(start, solution)
    if live and told:
        typer.echo("\r\x1b[K", nl=False, err=True)
    typer.echo(json.dumps(data) if json_ else text)
    if stop.is_set():
        raise typer.Exit(130)


def _rules(base: int | None, opening: str | None, komi: int | None, adjacent_setup: str | None) -> Rules:
    """Rules of options of which any may be missing."""
    return Rules(
        3 if base is None else base,
        "strong_pie" if opening is None else opening,
        0 if komi is None else komi,
        "allowed" if adjacent_setup is None else adjacent_setup,
    )


def _given(*options: object) -> bool:
    return any(option is not None for option in options)


def _exactly_one(**options: object) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if len(given) != 1:
        *names, last = [f"--{name}" for name in options]
        told = " and ".join(given) if given else "none of them"
        raise typer.BadParameter(f"give exactly one of {', '.join(names)} and {last}, not {told}")


@app.command()
def train(
    config: Annotated[Path | None, typer.Argument(help="The run's YAML file, such as configs/base3.yaml.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; may be repeated.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(min=0.01, help="Stop training after so many minutes.")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Where the run is kept; runs/NAME-TIME if not given.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
    workers: Annotated[
        str | None, typer.Option(metavar="N|auto", help="Self-play workers; 0: everything in this process.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT|auto", help="Join a running Ray cluster; see docs/cluster.md.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN_DIR|FILE", help="Go on with this run, or with a packed one.")
    ] = None,
    init_from: Annotated[
        Path | None, typer.Option(metavar="CHECKPOINT", help="Begin with the weights of a checkpoint or run.")
    ] = None,
) -> None:
    """Train a bot by self-play. Ctrl-C saves and ends; --resume goes on."""
    try:
        from training.config import load_config
        from training.console import LiveConsole, MessageHandler, final_table
        from training.loop import Run
        from training.pack import unpack
    except ModuleNotFoundError as error:
        raise RunError(f"training needs {error.name}, which is not installed: pip install '.[train]'") from None

    if resume is not None:
        if config is not None or seed is not None or init_from is not None:
            raise typer.BadParameter("--resume goes on with a run as it was begun: no CONFIG, --seed or --init-from")
        if run_dir is not None and not resume.is_file():
            raise typer.BadParameter("--run-dir goes with --resume only where a packed run is laid out")
    elif config is None:
        raise typer.BadParameter("name a configuration, such as configs/base3.yaml, or a run to --resume")
    changes = _changes(minutes, workers)
    with LiveConsole() as console:
        handler = MessageHandler(console)
        logging.getLogger().addHandler(handler)
        try:
            if resume is not None:
                folder = resume
                if resume.is_file():
                    folder = run_dir or Path("runs") / resume.name.split(".")[0]
                    unpack(resume, folder)
                run = Run.open(folder, console, tuple(set_ or []), changes, address)
            else:
                assert config is not None
                overrides = [*(set_ or []), *(f"{key}={value}" for key, value in changes.items())]
                settings = load_config(config, (*overrides, *([f"seed={seed}"] if seed is not None else [])))
                folder = run_dir or Path("runs") / f"{config.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
                run = Run.create(settings, folder, console, address, init_from)
            console.message(f"run directory {run.folder}, learner on {run.device}, CPU threads: {run.learner_threads}")
            summary = run.train()
        finally:
            logging.getLogger().removeHandler(handler)
    final_table(console.console, summary)
    console.message(f"the bot is {run.folder / summary['model']}; go on with: lifeline train --resume {run.folder}")


@app.command()
def pack(
    run: Annotated[Path, typer.Argument(help="The run's directory; it may go on meanwhile.")],
    out: Annotated[Path, typer.Option(help="The file to write, such as mine.tar.gz.")],
) -> None:
    """Pack a run into one file, to go on elsewhere with: lifeline train --resume FILE."""
    try:
        from training.pack import pack as pack_run
    except ModuleNotFoundError as error:
        raise RunError(f"pack needs {error.name}, which is not installed: pip install '.[train]'") from None
    size = pack_run(run, out)
    typer.echo(f"{out}: {size / 1e6:.1f} MB")


@app.command()
def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs, or one run.")] = Path("runs"),
) -> None:
    """List runs: whether they go on, how far they came, how strong they are."""
    try:
        from rich.console import Console

        from training.runs import list_runs, runs_table
    except ModuleNotFoundError as error:
        raise RunError(f"runs needs {error.name}, which is not installed: pip install '.[train]'") from None
    runs_table(Console(), list_runs(folder))


@app.command()
def records(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Game records, .gz or not; - is the input.")],
    import_moves: Annotated[
        bool, typer.Option("--import-moves", help="The files are move lists (a1,c1 d3 swap ...): print their records.")
    ] = False,
    base: Annotated[
        int | None, typer.Option(help="Of move lists: cells a side of the board, 3 to 12; 3 if not given.")
    ] = None,
    opening: Annotated[
        str | None, typer.Option(help="Of move lists: strong_pie, weak_pie or komi_pie; strong_pie if not given.")
    ] = None,
    komi: Annotated[int | None, typer.Option(help="Of move lists in komi_pie: points of komi, 0 to 99.")] = None,
    adjacent_setup: Annotated[
        str | None, typer.Option(help="Of move lists in weak_pie and komi_pie: allowed, or forbidden.")
    ] = None,
) -> None:
    """Check game records and say what is in them, or make records of move lists.

    Errors are printed one a line; any of them makes the exit code 1.
    """
    from lifeline.movelist import import_moves as record_of
    from lifeline.record_json import format_record
    from lifeline.records import survey

    if import_moves:
        rules = _rules(base, opening, komi, adjacent_setup)
        for name in files:
            with _input(name) as file:
                typer.echo(format_record(record_of(file, rules, name)))
        return
    if _given(base, opening, komi, adjacent_setup):
        raise typer.BadParameter("records say themselves what was played: --base and so on go with --import-moves")
    damaged = 0
    for name in files:
        line, errors = survey(sys.stdin.buffer if name == "-" else name, name, lambda e: typer.echo(e, err=True))
        typer.echo(line)
        damaged += errors > 0
    if damaged:
        raise RecordError(f"damaged or unreadable files: {damaged} of {len(files)}")


@bench.command()
def engine(
    base: BaseOption = 5,
    opening: OpeningOption = "strong_pie",
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="For each figure.")] = 5.0,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Working at once; rates are those of all.")] = 1,
    batch: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Step a BatchEnv of so many games, too.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Speed of the rules: random games, and stored positions stepped one by one."""
    from dataclasses import asdict

    from lifeline.bench import engine_rates

    rates = engine_rates(Rules(base, opening), seconds, threads, batch)
    if json_:
        typer.echo(json.dumps(asdict(rates)))
        return
    typer.echo(f"base {base}, {opening}, {threads} thread{'s' if threads > 1 else ''}")
    typer.echo(f"{rates.playout_steps_per_second:14,.0f} steps a second of random games")
    typer.echo(f"{rates.games_per_second:14,.0f} random games a second")
    typer.echo(f"{rates.state_steps_per_second:14,.0f} steps a second from stored positions, legal moves written")
    if rates.batch_steps_per_second is not None:
        typer.echo(f"{rates.batch_steps_per_second:14,.0f} steps a second of a BatchEnv of {batch} games")


@contextmanager
def _input(name: str) -> Iterator[BinaryIO]:
    """A file to read, the standard input if its name is -.

    Raises:
        RecordError: it cannot be opened.
    """
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 # closed below; only opening it is guarded
    except OSError as error:
        raise RecordError(f"cannot be read: {error.strerror or error}", name) from None
    with file:
        yield file


def _changes(minutes: float | None, workers: str | None) -> dict[str, object]:
    """The settings that may change when a run goes on."""
    changes: dict[str, object] = {} if minutes is None else {"minutes": minutes}
    if workers is not None:
        if workers != "auto" and not (workers.isascii() and workers.isdigit() and int(workers) <= 10_000):
            raise typer.BadParameter(f"--workers takes a number or auto, not {workers[:40]!r}")
        changes["workers"] = workers if workers == "auto" else int(workers)
    return changes


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
