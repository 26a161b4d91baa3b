"""The tables of a tournament's report, as HTML: ranking, crosstable, sequential test, facts.

Whatever comes from names is escaped here, by `html_text`.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping

from training.sprt import SprtState
from training.standings import Encounter, Standings
from training.standings_text import interval_text, plain, share_text, signed, superiority_text

# What a text of HTML may not hold, escaped or not, and what turns the direction of writing.
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Okabe and Ito's blue and vermilion, which the colour-blind tell apart too; as thin as text on them stays readable.
_BETTER, _WORSE, _DEPTH = "0, 114, 178", "213, 94, 0", 0.5


def clean_text(text: str) -> str:
    """A text without what HTML has no place for, which becomes U+FFFD."""
    return _NOT_TEXT.sub("\ufffd", text)


def html_text(text: str) -> str:
    """A text as HTML holds it, between tags or in quotes."""
    return html.escape(clean_text(text), quote=True)


def name_html(name: str) -> str:
    """A player's name, kept to itself whatever way it is written."""
    return f"<bdi>{html_text(name)}</bdi>"


def ranking_html(found: Standings) -> str:
    """The ranking, each player's interval drawn on one scale."""
    low, high, ticks = _scale(found)

    def at(elo: float) -> str:
        return f"{100 * (elo - low) / (high - low):.2f}%"

    grid = "".join(f'<line class="grid" x1="{at(t)}" x2="{at(t)}" y1="0" y2="100%"/>' for t in ticks)
    axis = "".join(f'<text x="{at(t)}" y="12">{plain(t)}</text>' for t in ticks)
    rows = []
    for rank, p in enumerate(found.players, start=1):
        r, fixed = p.rating, p.name == found.anchor
        interval = interval_text(p, found.anchor)
        bar = "" if fixed else f'<line class="bar" x1="{at(r.low)}" x2="{at(r.high)}" y1="50%" y2="50%"/>'
        point = f'<circle class="{"fixed" if fixed else "point"}" cx="{at(r.elo)}" cy="50%" r="5"/>'
        rows.append(
            f'<tr role="row"><td role="cell" class="rank">{rank}</td>'
            f'<th role="rowheader" scope="row">{name_html(p.name)}</th>'
            f'<td role="cell" class="elo">{plain(r.elo)}</td><td role="cell" class="interval">{interval}</td>'
            f'<td role="cell" class="plot"><svg role="img" aria-label="{plain(r.elo)}, {interval}">'
            f"{grid}{bar}{point}</svg></td>"
            f'<td role="cell" class="games">{p.games}</td>'
            f'<td role="cell" class="score">{share_text(p.wins, p.games)}</td>'
            f'<td role="cell" class="forfeits">{p.forfeits}</td></tr>'
        )
    names = ("rank", "#"), ("name", "player"), ("elo", "Elo"), ("interval", "95 % interval")
    heads = "".join(f'<th role="columnheader" scope="col" class="{c}">{n}</th>' for c, n in names)
    tail = "".join(f'<th role="columnheader" scope="col" class="{c}">{c}</th>' for c in ("games", "score", "forfeits"))
    return (
        f'<table class="ranking" role="table"><thead role="rowgroup"><tr role="row">{heads}'
        f'<th role="columnheader" scope="col" class="plot"><svg role="img" aria-label="Elo">{axis}</svg></th>'
        f'{tail}</tr></thead><tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _scale(found: Standings) -> tuple[float, float, list[float]]:
    """Ends of the axis, and where it has figures."""
    ends = [e for p in found.players for e in (p.rating.low, p.rating.elo, p.rating.high)]
    low, high = min(ends), max(ends)
    room = max(20.0, 0.08 * (high - low))
    low, high = low - room, high + room
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough)
    # Figures too near an end would be cut off.
    edge = 0.06 * (high - low)
    ticks = [step * i for i in range(math.ceil((low + edge) / step), math.floor((high - edge) / step) + 1)]
    return low, high, ticks


def crosstable_html(found: Standings) -> str:
    """Who beat whom, in the order of the ranking; each cell from the side of its row's player, and a link to games."""
    by_names = {(e.first, e.second): e for one in found.encounters for e in (one, one.reversed())}
    heads = "".join(
        f'<th scope="col" title="{html_text(p.name)}"><span>{rank}</span> {name_html(p.name)}</th>'
        for rank, p in enumerate(found.players, start=1)
    )
    rows = []
    for rank, p in enumerate(found.players, start=1):
        cells = []
        for other_rank, other in enumerate(found.players, start=1):
            e = by_names.get((p.name, other.name))
            if other is p:
                cells.append('<td class="self" aria-label="the same player"></td>')
            elif e is None:
                cells.append('<td class="none">\u00b7</td>')
            else:
                cells.append(_cell(e, f"{rank - 1},{other_rank - 1}"))
        rows.append(f'<tr><th scope="row"><span>{rank}</span> {name_html(p.name)}</th>{"".join(cells)}</tr>')
    return f'<table class="cross"><thead><tr><td></td>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _cell(e: Encounter, link: str) -> str:
    share = e.wins / e.games
    shade = f"rgba({_BETTER if share > 0.5 else _WORSE}, {_DEPTH * abs(2 * share - 1):.2f})"
    title = (
        f"{e.first} against {e.second}: {e.wins}-{e.games - e.wins}, {signed(e.elo)} Elo "
        f"({signed(e.low)} to {signed(e.high)}); pairs: {e.pairs_won} won, {e.pairs_drawn} split, {e.pairs_lost} lost; "
        f"likelihood of being better: {superiority_text(e.superiority)}"
    )
    return (
        f'<td style="background:{shade}" title="{html_text(title)}"><a href="#games={link}">'
        f"<b>{share_text(e.wins, e.games)}</b><span>{signed(e.elo)} \u00b1 {round((e.high - e.low) / 2)}</span>"
        f"<span>{e.pairs_won}/{e.pairs_drawn}/{e.pairs_lost}</span></a></td>"
    )


def sprt_html(test: SprtState, first: str | None) -> str:
    """The sequential test: what it asks, how far it is, and what it says."""
    width = test.upper - test.lower
    at = 100 * min(1.0, max(0.0, (test.llr - test.lower) / width))
    zero = 100 * -test.lower / width
    who, low, high = name_html(first) if first else "the first player", signed(test.elo0), signed(test.elo1)
    ends = f"{test.lower:.2f} and {test.upper:.2f}"
    says = {
        "elo1 accepted": f"Accepted: {who} is rather {high} than {low} Elo against the other.",
        "elo0 accepted": f"Accepted: {who} is rather {low} than {high} Elo against the other.",
    }.get(test.verdict, "Undecided: more pairs are needed.")
    return (
        f'<p class="verdict">{says}</p>'
        f"<p>Is {who} better by {high} Elo, or by {low}? After {test.pairs} pairs the log-likelihood ratio is "
        f"{test.llr:.2f}; the test ends at {ends}.</p>"
        f'<svg class="sprt" role="img" aria-label="log-likelihood ratio {test.llr:.2f} between {ends}">'
        '<rect class="track" x="0" y="8" width="100%" height="8" rx="4"/>'
        f'<rect class="run" x="{min(at, zero):.2f}%" y="8" width="{abs(at - zero):.2f}%" height="8"/>'
        f'<line class="zero" x1="{zero:.2f}%" x2="{zero:.2f}%" y1="4" y2="20"/>'
        f'<circle class="point" cx="{min(98.5, max(1.5, at)):.2f}%" cy="12" r="6"/></svg>'
        f'<p class="ends"><span>{low} Elo</span><span>{high} Elo</span></p>'
    )


def facts_html(facts: Mapping[str, str]) -> str:
    """What was played, and how."""
    return f'<dl class="facts">{"".join(_facts(facts))}</dl>'


def _facts(facts: Mapping[str, str]) -> Iterator[str]:
    for name, value in facts.items():
        yield f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>"
