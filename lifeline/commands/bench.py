"""Commands that measure how fast this machine is at the game."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lifeline.commands.options import BaseOption, OpeningOption
from lifeline.errors import MissingExtraError
from lifeline.rules import Rules

if TYPE_CHECKING:
    from training.config import Config

ConfigOption = Annotated[Path, typer.Option("--config", help="A run's YAML file, such as configs/base3.yaml.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; may be repeated.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def engine(
    base: BaseOption = 5,
    opening: OpeningOption = "strong_pie",
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="For each figure.")] = 5.0,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Working at once; rates are those of all.")] = 1,
    batch: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Step a BatchEnv of so many games, too.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Speed of the rules: random games, and stored positions stepped one by one."""
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


def search(
    base: BaseOption = 5,
    opening: OpeningOption = "strong_pie",
    batch: Annotated[int, typer.Option(min=1, max=65_536, help="Games searched at once.")] = 256,
    simulations: Annotated[int, typer.Option(min=2, max=100_000, help="Leaves grown for each game.")] = 64,
    evaluator: Annotated[
        str, typer.Option(metavar="null|FILE", help="What judges the leaves: nothing, which costs nothing, or a model.")
    ] = "null",
    policy: Annotated[str, typer.Option(metavar="gumbel|puct", help="How search chooses.")] = "gumbel",
    leaves: Annotated[int, typer.Option(min=1, max=1024, help="Of PUCT: grown at once in each tree.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="For each figure.")] = 5.0,
    json_: JsonOption = False,
) -> None:
    """Speed of search from mid-game positions, on one thread."""
    from lifeline.bench_search import search_rates
    from lifeline.search.evaluator import OnnxEvaluator

    judge = None if evaluator == "null" else OnnxEvaluator(evaluator)
    rates = search_rates(Rules(base, opening), batch, simulations, policy, judge, seconds, leaves)
    if json_:
        typer.echo(json.dumps(asdict(rates)))
        return
    at_once = f", {leaves} leaves of each at once" if leaves > 1 else ""
    typer.echo(f"base {base}, {opening}, {policy}, {batch} games at once{at_once}, {simulations} simulations, 1 thread")
    name = "with an evaluator that costs nothing" if judge is None else f"with {evaluator}"
    typer.echo(f"{rates.leaves_per_second:14,.0f} leaves a second {name} ({rates.low:,.0f}-{rates.high:,.0f})")
    if rates.leaves_per_second_with_planes is not None:
        typer.echo(f"{rates.leaves_per_second_with_planes:14,.0f} leaves a second, their planes encoded")


def selfplay(
    config: ConfigOption,
    set_: SetOption = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="In all, preparations not counted.")] = 20.0,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, max=10_000, help="In place of --seconds: compare the first and the last minute."),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Speed of one worker's self-play on one core, in turn with its network alone."""
    settings = _settings("selfplay", config, set_)
    from training.bench import selfplay_rates

    rates = selfplay_rates(settings, seconds, minutes)
    if json_:
        typer.echo(json.dumps(asdict(rates)))
        return
    typer.echo(
        f"base {rates.base}, {rates.opening}, {rates.batch} games at once, {rates.num_simulations} simulations, "
        f"{rates.parameters:,} weights, 1 thread"
    )
    typer.echo(f"{rates.evaluations_per_second:14,.0f} evaluations a second in self-play")
    typer.echo(
        f"{rates.forward_only_per_second:14,.0f} by the evaluator alone, batches of {rates.mean_batch:.0f} in both"
    )
    spread = f"{rates.efficiency_low:.3f}-{rates.efficiency_high:.3f} over {rates.slices} slices"
    typer.echo(f"{rates.efficiency:14.3f} efficiency, the ratio of the two ({spread})")
    if rates.solver_share:
        typer.echo(f"{rates.solver_share:14.1%} of the time of self-play in the solver")
    typer.echo(f"{rates.games_per_hour:14,.0f} games an hour")
    typer.echo(f"{rates.peak_memory_mb:14,.0f} MB of memory at most")
    if rates.last_over_first is not None:
        typer.echo(
            f"{rates.last_over_first:14.3f} of the first minute's throughput in the last, where the evaluator alone "
            f"had {rates.forward_last_over_first:.3f}"
        )


def learner(
    config: ConfigOption,
    set_: SetOption = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="For each figure.")] = 10.0,
    json_: JsonOption = False,
) -> None:
    """Speed of the learner on CPU threads."""
    settings = _settings("learner", config, set_)
    from training.bench import learner_rates

    rates = learner_rates(settings, seconds)
    if json_:
        typer.echo(json.dumps(asdict(rates)))
        return
    typer.echo(f"base {rates.base}, batches of {rates.batch}, {rates.parameters:,} weights")
    typer.echo(f"{rates.samples_per_second:14,.0f} samples a second on 1 thread")
    typer.echo(f"{rates.samples_per_second_all_cores:14,.0f} on {rates.cores}")
    typer.echo(
        f"{100 * rates.forward_share:13.0f}% of a step is the forward pass, {100 * rates.backward_share:.0f}% the "
        f"gradients, {100 * rates.update_share:.0f}% the optimiser"
    )
    typer.echo(f"{rates.peak_memory_mb:14,.0f} MB of memory at most")


def _settings(command: str, config: Path, overrides: list[str] | None) -> Config:
    """The configuration of a command that needs the training package."""
    try:
        import training.bench  # noqa: F401
        from training.config import load_config
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"bench {command}", error.name, "train") from None
    return load_config(config, tuple(overrides or []))
