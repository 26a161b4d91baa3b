"""A tournament's report: one page of HTML that needs nothing else, and what else is made of the standings."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from lifeline.errors import RulesError
from lifeline.game_record import REASONS, GameRecord
from lifeline.notation import action_text
from lifeline.rules import Rules
from training.pictures import ratings_picture_png
from training.report_games import GameSelection, game_data
from training.report_tables import (
    clean_text,
    crosstable_html,
    facts_html,
    html_text,
    name_html,
    ranking_html,
    sprt_html,
)
from training.standings import Standings
from training.standings_text import first_seat_text, plain, standings_json, standings_table

__all__ = ["MAX_GAMES", "ratings_png", "report_html", "standings_json", "standings_table"]

MAX_GAMES = 2000
"""Games in a report, if nothing else is said: some 0.6 MB on base 5."""

_CELL = 40.0  # width of a hexagon in the page's drawing
_MARGIN = 36.0


def ratings_png(found: Standings, title: str = "Ratings with 95 % intervals") -> bytes:
    """The ratings and their intervals as a picture; see `ratings_picture_png`."""
    rows = [(p.name, p.rating.elo, p.rating.low, p.rating.high) for p in found.players]
    return ratings_picture_png(rows, title)


def report_html(
    title: str,
    rules: Rules,
    facts: Mapping[str, str],
    found: Standings,
    games: Iterable[GameRecord],
    max_games: int = MAX_GAMES,
) -> str:
    """The report of a tournament as one page of HTML: tables, and the games as boards to step through.

    The page asks for nothing from anywhere, and forbids itself to. `#game=3&ply=10` behind its address opens the third
    game at its tenth ply.

    Args:
        title: above it all.
        rules: of all games.
        facts: name -> value, such as seed and book; shown as they stand.
        found: the standings.
        games: read once; numbered in their order, from 1.
        max_games: games that are shown; of more, the first of each two players, and the page says so.
    Raises:
        RulesError: a game of other rules.
        RecordError: a game with an illegal move.
    """
    selection = GameSelection(_of(games, rules), max_games)
    data = _data(rules, found, selection)
    page = {name: _file(name) for name in ("report.css", "report.js")}
    digest = base64.b64encode(hashlib.sha256(page["report.js"].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    test = ""
    if found.sprt is not None:
        test = f"<section><h2>Sequential test</h2>{sprt_html(found.sprt, found.sprt_first)}</section>"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html_text(title)}</title>
<style>
{page["report.css"]}</style>
</head>
<body>
<header><h1>{html_text(title)}</h1>
<p>Lifeline, {html_text(_rules_text(rules))}, {_count(selection.total, "game")}</p></header>
<main>
<section><h2>Ranking</h2>
{ranking_html(found)}
<p class="note">{_anchor_html(found)} {html_text(_sentence(first_seat_text(found)))} Ratings are of even positions:
the first seat's advantage is taken out of them. Intervals are of 95&nbsp;%, from pairs of games drawn anew.</p>
</section>
{test}
<section><h2>Crosstable</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Crosstable">{crosstable_html(found)}</div>
<p class="note">Each cell from the side of its row: games won; the difference in Elo that this share amounts to, with
half the width of its 95&nbsp;% interval; pairs won/split/lost. A pair is one opening played twice, seats exchanged.
A cell leads to its games.</p>
</section>
<section id="games"><h2>Games</h2>
<p>{html_text(_selection_text(selection))}</p>
<noscript><p>The games are drawn by a script, which is switched off here.</p></noscript>
<div id="viewer" hidden></div>
<div id="list" hidden></div>
</section>
<section><h2>Settings</h2>
{facts_html(facts)}
</section>
</main>
<script type="application/json" id="data">{data}</script>
<script>{page["report.js"]}</script>
</body>
</html>
"""


def _of(games: Iterable[GameRecord], rules: Rules) -> Iterable[GameRecord]:
    for number, game in enumerate(games, start=1):
        if game.rules != rules:
            raise RulesError(f"game {number} is of {_rules_text(game.rules)}, the report of {_rules_text(rules)}")
        yield game


def _data(rules: Rules, found: Standings, selection: GameSelection) -> str:
    """The page's data as JSON that may stand in a script element."""
    geometry, row = rules.board, _CELL * math.sqrt(3) / 2
    width, height = (2 * rules.base - 1) * _CELL + 2 * _MARGIN, (2 * rules.base - 2) * row + _CELL + 2 * _MARGIN
    # Names of the ranking first: the crosstable's links count on it.
    names = dict.fromkeys([*(p.name for p in found.players), *(p.name for _, g in selection.games for p in g.players)])
    players = list(names)
    values: dict[str, Any] = {
        "players": [clean_text(name) for name in players],
        "reasons": list(REASONS),
        "moves": [action_text(a, geometry) for a in range(rules.num_actions)],
        "cells": [
            [round(width / 2 + (q + z / 2) * _CELL, 1), round(height / 2 + z * row, 1)] for q, z in geometry.coords
        ],
        "rows": [r.start for r in geometry.rows],
        "size": [round(width), round(height), _CELL],
        "games": [game_data(n, game, players, REASONS) for n, game in selection.games],
    }
    text = json.dumps(values, separators=(",", ":"))
    # No name may end the script element or begin a comment in it.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _file(name: str) -> str:
    return resources.files("training").joinpath("page", name).read_text(encoding="utf-8")


def _rules_text(rules: Rules) -> str:
    parts = [f"base {rules.base}", rules.opening.replace("_", " ")]
    if rules.opening == "komi_pie":
        parts.append(f"komi {rules.komi}")
    if rules.adjacent_setup == "forbidden":
        parts.append("adjacent setup forbidden")
    return ", ".join(parts)


def _anchor_html(found: Standings) -> str:
    return f"{name_html(found.anchor)} is fixed at {plain(found.anchor_elo)}."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _selection_text(selection: GameSelection) -> str:
    shown = len(selection.games)
    if shown == selection.total:
        return f"All {_count(shown, 'game')}." if shown > 1 else f"{_count(shown, 'game')}."
    return f"{shown} of {_count(selection.total, 'game')}: the first of each two players. The others are left out here."


def _count(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "s")
