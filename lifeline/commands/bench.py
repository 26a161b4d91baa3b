"""Commands that measure how fast this machine is at the game."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lifeline.commands.options import BaseOption, OpeningOption
from lifeline.rules import Rules


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
