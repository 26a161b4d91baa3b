"""Commands for matches: tournaments, and the books of openings they are played from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lifeline.commands.options import (
    BaseOption,
    GivenAdjacent,
    GivenBase,
    GivenKomi,
    GivenOpening,
    OpeningOption,
    any_given,
    exactly_one,
    rules_of,
    workers_of,
)
from lifeline.errors import MissingExtraError, RunError
from lifeline.rules import Rules

if TYPE_CHECKING:
    from training.entrants import Entrant
    from training.sprt import Sprt
    from training.tournament import Tournament


def tournament(
    players: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLAYER...",
            help="Two or more of: FILE.onnx, a checkpoint or a run's folder, random, rollout:N, solver, "
            "gtp:'COMMAND LINE'. NAME=PLAYER names it, PLAYER@256 gives it simulations, PLAYER@256/gumbel another "
            "search, PLAYER@256/alone no help by the solver, PLAYER@level3 a level, PLAYER@0.5s seconds a move.",
        ),
    ] = None,
    base: GivenBase = None,
    opening: GivenOpening = None,
    komi: GivenKomi = None,
    adjacent_setup: GivenAdjacent = None,
    games: Annotated[
        int | None, typer.Option(min=2, max=1_000_000, help="For each two players that meet; 100 if not given.")
    ] = None,
    gauntlet: Annotated[
        bool, typer.Option("--gauntlet", help="The first player meets all others, and they not each other.")
    ] = False,
    simulations: Annotated[
        int | None, typer.Option(min=0, max=1_000_000, help="Of a model for each move; 64 if not given, 0: no search.")
    ] = None,
    seconds_per_move: Annotated[
        float | None, typer.Option(min=0.001, max=86_400, help="For each move of every player, in place of a number.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The tournament's folder. If it holds this tournament already, it goes on.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with the tournament in this folder.")
    ] = None,
    book: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Openings, made by `lifeline book`; else those that come along.")
    ] = None,
    sprt: Annotated[
        str | None,
        typer.Option(
            metavar="ELO0,ELO1",
            help="Of two players: stop as soon as it is clear whether the first is ELO1 or only ELO0 stronger.",
        ),
    ] = None,
    anchor: Annotated[
        str | None, typer.Option(metavar="NAME[=ELO]", help="Whose rating is fixed; random, else the first player.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option(metavar="N|auto", help="Playing at once; 0: in this process; one a core if not given.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT|auto", help="Join a running Ray cluster; see docs/cluster.md.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Of everything random; 0 if not given.")
    ] = None,
) -> None:
    """Let players meet in pairs of games, and rate them. Ctrl-C keeps what has been played; --resume goes on."""
    try:
        from training.sprt import Sprt
        from training.tournament_console import Live, show
        from training.tournament_run import local_or_cluster, play, report
        from training.tournament_store import create, locked, tournament_in
        from training.tournament_store import resume as go_on_with
    except ModuleNotFoundError as error:
        raise MissingExtraError("a tournament", error.name, "train") from None

    if (resume is None) == (out is None):
        raise typer.BadParameter("name the tournament's folder: --out DIR to begin one, or --resume DIR")
    if resume is not None and (
        players or gauntlet or any_given(base, opening, komi, adjacent_setup, simulations, seconds_per_move, book, seed)
    ):
        raise typer.BadParameter("--resume goes on with a tournament as it was begun; only --games may be raised")
    if games is not None and games % 2:
        raise typer.BadParameter(f"games come in pairs: --games must be even, not {games}")
    wanted = workers_of(workers)
    count = None if wanted in (None, "auto") else int(wanted)
    if count == 0 and address is not None:
        raise typer.BadParameter("a cluster's --address is of no use with --workers 0, which plays in this process")
    test = None if sprt is None else Sprt(*_two_numbers(sprt))
    folder = resume if resume is not None else out
    assert folder is not None
    settings = None
    if resume is None:
        rules = rules_of(base, opening, komi, adjacent_setup)
        pairs = (100 if games is None else games) // 2
        settings = _tournament(players or [], rules, pairs, gauntlet, simulations, seconds_per_move, book, seed or 0)
        name, elo = _check(settings.entrants, test, anchor)
    with locked(folder, make=settings is not None):
        if settings is not None:
            store = create(folder, settings)
        else:  # refused, if at all, before more games are written down
            name, elo = _check(tournament_in(folder).entrants, test, anchor)
            store = go_on_with(folder, games and games // 2)
        t = store.tournament
        typer.echo(
            f"{t.games} games on base {t.rules.base}, {t.rules.opening}; {len(t.openings)} openings {t.openings_from}"
        )
        if t.repeated_pairs:
            typer.echo(
                f"warning: there are no more openings, and {t.repeated_pairs} pairs of models repeat one and so both "
                "games: intervals and tests, which count them, are too sure of themselves; take fewer --games",
                err=True,
            )
        if store.done:
            typer.echo(f"{len(store.done)} of them have been played already")
        stopped = False
        try:
            if store.left():
                for entrant in t.entrants:
                    entrant.check(t.rules)
                with local_or_cluster(t, count, address) as pool, Live() as live:
                    play(store, pool, test, live.update)
        except KeyboardInterrupt:
            stopped = True
            store.read()
        show(report(store, name, elo, test), folder)
        if stopped:
            typer.echo(f"stopped; go on with: lifeline tournament --resume {folder}", err=True)
            raise typer.Exit(130)


def _tournament(
    players: list[str],
    rules: Rules,
    pairs: int,
    gauntlet: bool,
    simulations: int | None,
    seconds: float | None,
    book: Path | None,
    seed: int,
) -> Tournament:
    from lifeline.play.players import Budget
    from training.entrants import parse_entrants
    from training.tournament import Tournament, opening_set

    if simulations is not None and seconds is not None:
        raise typer.BadParameter("a move is limited by --simulations or by --seconds-per-move, not by both")
    entrants = parse_entrants(players, Budget(64 if simulations is None else simulations, seconds))
    openings, source = opening_set(rules, pairs, book, seed)
    return Tournament(rules, tuple(entrants), openings, pairs, gauntlet, seed, source)


def _two_numbers(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--sprt takes two numbers, such as 0,30, not {text[:40]!r}") from None
    return low, high


def _check(entrants: Sequence[Entrant], test: Sprt | None, anchor: str | None) -> tuple[str, float]:
    """See that test and anchor are of these players; whose rating is fixed, and at what."""
    if test is not None and len(entrants) != 2:
        raise typer.BadParameter(f"--sprt is a test of two players, not of {len(entrants)}")
    return _anchor(anchor, entrants)


def _anchor(text: str | None, entrants: Sequence[Entrant]) -> tuple[str, float]:
    """Whose rating is fixed, and at what."""
    names = [e.name for e in entrants]
    if text is None:
        return next((e.name for e in entrants if e.text == "random"), names[0]), 0.0
    name, _, elo = text.partition("=")
    try:
        value = float(elo) if elo else 0.0
    except ValueError:
        value = float("nan")
    if name not in names or not abs(value) < 100_000:
        raise typer.BadParameter(f"--anchor takes one of {', '.join(names)}, and =ELO behind it, not {text[:80]!r}")
    return name, value


def book(
    out: Annotated[Path, typer.Option(help="The file to write, such as mine.json.")],
    base: BaseOption = 3,
    opening: OpeningOption = "strong_pie",
    komi: GivenKomi = None,
    adjacent_setup: GivenAdjacent = None,
    model: Annotated[Path | None, typer.Option(metavar="FILE", help="Judge by this exported model.")] = None,
    simulations: Annotated[
        int | None, typer.Option(min=2, max=100_000, help="Of the model, for each opening; 64 if not given.")
    ] = None,
    rollouts: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="Judge by so many random rollouts instead.")
    ] = None,
    exact: Annotated[bool, typer.Option("--solver", help="Judge by exact values instead; base 3 only.")] = False,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Openings to keep.")] = 500,
    candidates: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Random openings to judge; 8 times --count if not given.")
    ] = None,
    turns: Annotated[int, typer.Option(min=2, max=20, help="Of each opening; the swap is behind it.")] = 2,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of the random openings.")] = 0,
) -> None:
    """Make a book of varied, near-balanced openings for tournaments.

    Random openings are judged by exactly one of --model, --rollouts and --solver; the most even ones are kept.
    """
    import numpy as np

    from lifeline.play.book import Judge, make_book, network_judge, rollout_judge, solver_judge
    from lifeline.search.evaluator import OnnxEvaluator

    exactly_one(model=model, rollouts=rollouts, solver=exact or None)
    if model is None and simulations is not None:
        raise typer.BadParameter("--simulations are those of --model")
    if out.is_dir() or not out.parent.is_dir():
        raise RunError(
            f"{out}: cannot be written: {'it is a directory' if out.is_dir() else 'there is no such directory'}"
        )
    rules = rules_of(base, opening, komi, adjacent_setup)
    judge: Judge
    if model is not None:
        number = 64 if simulations is None else simulations
        judge, by = network_judge(rules, OnnxEvaluator(model), number), f"{model.name}, {number} simulations"
    elif rollouts is not None:
        judge, by = rollout_judge(rules, rollouts), f"{rollouts} rollouts"
    else:
        if base > 3:
            raise typer.BadParameter("--solver finishes in time on base 3 only")
        judge, by = solver_judge(rules), "exact values behind two random plies"
    if candidates is not None and candidates < count:
        raise typer.BadParameter(f"--candidates must be at least --count, {count}, not {candidates}")
    live = sys.stderr.isatty()

    def progress(done: int, total: int) -> None:
        line = f"{done} of {total} openings judged"
        typer.echo(f"\r{line}\x1b[K" if live else line, nl=not live, err=True)

    made = make_book(rules, judge, f"judged by {by}", count, np.random.default_rng(seed), turns, candidates, progress)
    if live:
        typer.echo(err=True)
    made.write(out)
    worst = max(map(abs, made.values))
    typer.echo(f"{out}: {len(made.openings)} openings of base {base}, {opening}; values within {worst:.3f} of even")
