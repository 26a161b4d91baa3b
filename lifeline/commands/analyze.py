"""The command that analyses positions for other programs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated

import typer


def analyze(
    model: Annotated[Path, typer.Option(help="Analyse by this exported model, such as runs/NAME/bot.onnx.")],
    simulations: Annotated[
        int, typer.Option(min=0, max=100_000, help="Of each position, where a query says nothing; 0: no search.")
    ] = 64,
    max_simulations: Annotated[int, typer.Option(min=2, max=1_000_000, help="That a query may ask for.")] = 100_000,
    batch: Annotated[int, typer.Option(min=1, max=4096, help="Positions searched at once, at most.")] = 256,
    threads: Annotated[int, typer.Option(min=0, max=1024, help="CPU threads of the network; 0: one a core.")] = 1,
) -> None:
    """Analyse many positions: JSON lines on standard input, answers on standard output. See docs/analysis.md."""
    from lifeline.play.analysis import AnalysisService, serve
    from lifeline.play.analysis_queries import MAX_QUERY
    from lifeline.play.engine import check_simulations
    from lifeline.play.lines import LineReader
    from lifeline.search.evaluator import OnnxEvaluator

    check_simulations(simulations)
    if simulations > max_simulations:
        raise typer.BadParameter("--simulations are at most --max-simulations")
    evaluator = OnnxEvaluator(model, threads)
    service = AnalysisService(evaluator, model.stem, simulations, max_simulations, batch)
    # Answers keep the standard output to themselves: what anything else prints there goes to the standard error.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(service, LineReader(lambda size: os.read(0, size), MAX_QUERY), answers)
    with contextlib.suppress(OSError):  # nobody is left to hear them
        answers.close()
