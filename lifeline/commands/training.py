"""Commands for training runs. What they need of the training package is imported inside them."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Annotated

import typer

from lifeline.commands.options import workers_of
from lifeline.errors import MissingExtraError


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
        Path | None,
        typer.Option(metavar="CHECKPOINT|FILE", help="Begin with the weights of a checkpoint or run, or of a file."),
    ] = None,
) -> None:
    """Train a bot by self-play. Ctrl-C saves and ends; --resume goes on."""
    try:
        from training.config import load_config
        from training.console import LiveConsole, MessageHandler, final_table
        from training.loop import Run
        from training.pack import unpack
    except ModuleNotFoundError as error:
        raise MissingExtraError("training", error.name, "train") from None

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


def pack(
    run: Annotated[Path, typer.Argument(help="The run's directory; it may go on meanwhile.")],
    out: Annotated[Path, typer.Option(help="The file to write, such as mine.tar.gz.")],
) -> None:
    """Pack a run into one file, to go on elsewhere with: lifeline train --resume FILE."""
    try:
        from training.pack import pack as pack_run
    except ModuleNotFoundError as error:
        raise MissingExtraError("pack", error.name, "train") from None
    size = pack_run(run, out)
    typer.echo(f"{out}: {size / 1e6:.1f} MB")


def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of runs, or one run.")] = Path("runs"),
) -> None:
    """List runs: whether they go on, how far they came, how strong they are."""
    try:
        from rich.console import Console

        from training.runs import list_runs, runs_table
    except ModuleNotFoundError as error:
        raise MissingExtraError("runs", error.name, "train") from None
    runs_table(Console(), list_runs(folder))


def _changes(minutes: float | None, workers: str | None) -> dict[str, object]:
    """The settings that may change when a run goes on."""
    changes: dict[str, object] = {} if minutes is None else {"minutes": minutes}
    if (wanted := workers_of(workers)) is not None:
        changes["workers"] = wanted
    return changes
