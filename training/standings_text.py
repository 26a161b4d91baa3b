"""The standings of a tournament for a terminal, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from training.standings import Encounter, Standing, Standings

# More columns of three lines each than these are not read in a terminal: only shares are shown then.
_FULL_COLUMNS = 6


def standings_table(found: Standings) -> RenderableType:
    """The ranking, the crosstable, the first seat's advantage and the sequential test, for a console."""
    parts: list[RenderableType] = [_ranking(found)]
    if len(found.players) > 2:
        parts += [Text(), _crosstable(found)]
    elif found.encounters:
        parts += [Text(), Text(encounter_text(found.encounters[0]))]
    parts += [Text(), Text(first_seat_text(found))]
    if found.sprt is not None:
        parts.append(Text(sprt_text(found)))
    return Group(*parts)


def standings_json(found: Standings) -> dict[str, Any]:
    """The standings as an object of JSON, its keys those of the dataclasses; players in order, with their `rank`."""
    values = asdict(found)
    for rank, player in enumerate(values["players"], start=1):
        rating = player.pop("rating")
        player |= {"rank": rank, "elo": rating["elo"], "low": rating["low"], "high": rating["high"]}
        player["is_anchor"] = player["name"] == found.anchor
    return values


def signed(elo: float) -> str:
    """A difference in Elo, rounded, with its sign."""
    return f"{elo:+z.0f}" if round(elo) else "0"


def plain(elo: float) -> str:
    """A rating, rounded."""
    return f"{elo:z.0f}"


def interval_text(player: Standing, anchor: str) -> str:
    """The ends of a rating's interval."""
    return "fixed" if player.name == anchor else f"{plain(player.rating.low)} to {plain(player.rating.high)}"


def share_text(wins: int, games: int) -> str:
    """Games won in per cent."""
    return f"{100 * wins / games:.1f} %" if games else "-"


def superiority_text(value: float) -> str:
    """A likelihood in per cent, never rounded to certainty."""
    percent = 100 * value
    if percent > 99.9:
        return "> 99.9 %"
    return "< 0.1 %" if percent < 0.1 else f"{percent:.1f} %"


def encounter_text(e: Encounter) -> str:
    """An encounter in a sentence."""
    return (
        f"{e.first} against {e.second}: {e.wins}-{e.games - e.wins}, {share_text(e.wins, e.games)}, "
        f"{signed(e.elo)} Elo (95 % interval {signed(e.low)} to {signed(e.high)}); of its pairs {e.pairs_won} won, "
        f"{e.pairs_drawn} split, {e.pairs_lost} lost; better with likelihood {superiority_text(e.superiority)}"
    )


def first_seat_text(found: Standings) -> str:
    """The first seat's advantage in a line."""
    return (
        f"advantage of the first seat: {signed(found.first_seat)} Elo "
        f"(95 % interval {signed(found.first_seat_low)} to {signed(found.first_seat_high)})"
    )


def sprt_text(found: Standings) -> str:
    """The sequential test in a line; "" where there is none."""
    test = found.sprt
    if test is None:
        return ""
    who = found.sprt_first or "the first player"
    return (
        f"sequential test of {who}, {signed(test.elo1)} against {signed(test.elo0)} Elo: {test.verdict} after "
        f"{test.pairs} pairs, LLR {test.llr:.2f} ({test.lower:.2f} to {test.upper:.2f})"
    )


def _ranking(found: Standings) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("player", overflow="fold", min_width=12)
    for name in ("Elo", "95 % interval", "games", "score"):
        table.add_column(name, justify="right", no_wrap=True)
    forfeits = any(p.forfeits for p in found.players)
    if forfeits:
        table.add_column("forfeits", justify="right", no_wrap=True)
    for rank, p in enumerate(found.players, start=1):
        row = [plain(p.rating.elo), interval_text(p, found.anchor), str(p.games), share_text(p.wins, p.games)]
        table.add_row(str(rank), Text(p.name), *row, *([str(p.forfeits)] if forfeits else []))
    return table


def _crosstable(found: Standings) -> Table:
    by_names = {(e.first, e.second): e for one in found.encounters for e in (one, one.reversed())}
    full = len(found.players) <= _FULL_COLUMNS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("score, Elo, pairs won-split-lost" if full else "score", overflow="fold", min_width=12)
    for rank in range(1, len(found.players) + 1):
        table.add_column(str(rank), justify="right", no_wrap=True)
    for rank, p in enumerate(found.players, start=1):
        cells = [_cell(by_names.get((p.name, other.name)), full) for other in found.players]
        table.add_row(str(rank), Text(p.name), *cells)
    return table


def _cell(e: Encounter | None, full: bool) -> str:
    if e is None:
        return "\u00b7"
    if not full:
        return f"{100 * e.wins / e.games:.0f}"
    elo = f"{signed(e.elo)} \u00b1{round((e.high - e.low) / 2)}"
    return f"{share_text(e.wins, e.games)}\n{elo}\n{e.pairs_won}-{e.pairs_drawn}-{e.pairs_lost}"
