"""The command that lets other programs play with the bots here."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lifeline.commands.options import LevelOption, OpeningOption, any_given
from lifeline.rules import Rules


def gtp(
    model: Annotated[Path | None, typer.Option(help="Play by this exported model, such as runs/NAME/bot.onnx.")] = None,
    player: Annotated[
        str | None, typer.Option(help="In place of a model: random, rollout:N or solver; rollout:1000 if not given.")
    ] = None,
    base: Annotated[int, typer.Option(help="Cells a side of the board, 3 to 12, until boardsize changes it.")] = 5,
    opening: OpeningOption = "strong_pie",
    komi: Annotated[int, typer.Option(help="Points of komi, 0 to 99; komi_pie only.")] = 0,
    adjacent_setup: Annotated[str, typer.Option(help="allowed or forbidden; weak_pie and komi_pie only.")] = "allowed",
    simulations: Annotated[
        int | None,
        typer.Option(min=0, max=100_000, help="Of the model for each move, 64 if not given; 0: its policy alone."),
    ] = None,
    seconds_per_move: Annotated[
        float | None, typer.Option(help="In place of a number of simulations or rollouts; an upper limit under clocks.")
    ] = None,
    level: LevelOption = None,
    resign_below: Annotated[
        float | None,
        typer.Option(
            min=-1, max=1, help="Give up after three own moves in a row valued below this; -1, if not given: never."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**64 - 1, help="Of what is random; another one each game if not given.")
    ] = None,
) -> None:
    """Speak GTP 2 on standard input and output: play for another program. See docs/gtp.md."""
    import secrets

    from lifeline.play.gtp import GtpEngine, serve
    from lifeline.play.gtp_commands import GtpSession
    from lifeline.play.lines import LineReader
    from lifeline.play.players import Budget, Player, make_bot, make_player

    if model is not None and player is not None:
        raise typer.BadParameter("give one of --model and --player, not both")
    if model is None and any_given(simulations, level, resign_below):
        raise typer.BadParameter("--simulations, --level and --resign-below are those of --model")
    if player is not None and player.startswith("gtp:"):
        raise typer.BadParameter("--player is random, rollout:N or solver: a program that speaks GTP needs no other")
    budget = Budget(64 if simulations is None else simulations, seconds_per_move, level=level or "full")
    settings = replace(budget.settings(), resign_below=-1.0 if resign_below is None else resign_below)

    def player_of(rules: Rules) -> Player:
        if model is None:
            return make_player(player or "rollout:1000", rules, budget)
        return make_bot(model, rules, settings)

    def seeds() -> int:
        return secrets.randbits(64) if seed is None else seed

    session = GtpSession(Rules(base, opening, komi, adjacent_setup), player_of, seeds, seconds_per_move)
    # Answers keep the standard output to themselves: what anything else prints there goes to the standard error.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(GtpEngine(session), LineReader(lambda size: os.read(0, size)), answers)
    with contextlib.suppress(OSError):  # nobody is left to hear them
        answers.close()
