"""Commands for the game itself: counts, positions, exact values, a game in the terminal."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from lifeline.commands.options import (
    BaseOption,
    GivenAdjacent,
    GivenBase,
    GivenKomi,
    GivenOpening,
    LevelOption,
    MovesOption,
    OpeningOption,
    PositionOption,
    any_given,
    exactly_one,
    rules_of,
)
from lifeline.errors import LifelineError
from lifeline.rules import Position, Rules


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


def play(
    base: BaseOption = 3,
    opening: OpeningOption = "strong_pie",
    komi: Annotated[
        int | None,
        typer.Option(min=0, max=99, help="Of komi_pie. If not given, seat 0 names it, and the other takes a colour."),
    ] = None,
    adjacent_setup: GivenAdjacent = None,
    model: Annotated[
        Path | None, typer.Option(help="Play against this exported model, such as runs/NAME/bot.onnx.")
    ] = None,
    opponent: Annotated[
        str, typer.Option(help="Without a model: random, rollout:N, solver, or gtp:COMMAND.")
    ] = "rollout:1000",
    simulations: Annotated[
        int | None, typer.Option(min=2, max=100_000, help="For each move of the model; 64 if not given.")
    ] = None,
    level: LevelOption = None,
    seat: Annotated[int, typer.Option(min=0, max=1, help="Yours: 0 begins as Black, 1 may swap.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1, help="Seed of the opponent.")] = None,
    ascii_: Annotated[bool, typer.Option("--ascii", help="Draw stones as X and O.")] = False,
) -> None:
    """Play against a bot in the terminal."""
    import secrets

    from rich.console import Console

    from lifeline.play.console import Screen
    from lifeline.play.players import Budget, Player, make_bot, make_player
    from lifeline.play.terminal import play_in_terminal, settle_komi

    rules = rules_of(base, opening, komi, adjacent_setup)
    if model is None and any_given(simulations, level):
        raise typer.BadParameter("--simulations and --level are those of --model")
    player: Player
    screen = Screen(Console(), ascii_)
    if model is None:
        player = make_player(opponent, rules)
    else:
        player = make_bot(model, rules, Budget(64 if simulations is None else simulations, level=level or "full"))
        if opening == "komi_pie" and komi is None:
            settled = settle_komi(player.engine, seat, screen)
            if settled is None:
                return
            rules, seat = settled
            player = player.of(rules)
    play_in_terminal(rules, player, seat, secrets.randbits(64) if seed is None else seed, screen)


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
    from rich.console import Console

    from lifeline.files import write_atomic
    from lifeline.play.console import draw_board
    from lifeline.show import describe, of_moves, of_position, of_record, read_heat
    from lifeline.svg import board_svg

    exactly_one(moves=moves, position=position, record=record)
    if record is not None and any_given(base, opening, komi, adjacent_setup):
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
        rules = rules_of(base, opening, komi, adjacent_setup)
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
        draw_board(Console(), shown.position, shown.last, ascii_)
        if shown.winner is not None and not shown.position.is_over:
            typer.echo(f"the record: seat {shown.winner} has won, {shown.reason}")
    elif svg != "-":
        typer.echo(svg)


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

    exactly_one(moves=moves, position=position, openings=openings or None)
    rules = rules_of(base, opening, komi, adjacent_setup)
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
