"""Games as texts, in and out of a page: records of JSON, move lists, positions."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from lifeline.errors import RequestError
from lifeline.game_record import GameRecord, PlayerInfo, Result
from lifeline.movelist import import_moves
from lifeline.notation import MAX_TEXT
from lifeline.play.server_queries import ExportQuery, ImportQuery
from lifeline.play.server_view import Replay, move_list, replay
from lifeline.record_json import format_record
from lifeline.records import read_records
from lifeline.rules import Rules
from lifeline.show import rules_data


def imported(query: ImportQuery) -> dict[str, Any]:
    """The game of a text: rules, start, moves, players, result and how many records there are."""
    text, rules = query.text.strip(), query.rules()
    if text.startswith("{"):
        return _of_records(text, query.number)
    if "/" in text and len(text) <= MAX_TEXT:
        # The board size shows in the number of rows.
        size = text.partition(" ")[0].count("/") // 2 + 1
        rules = Rules(size, rules.opening, rules.komi, rules.adjacent_setup)
        return _game_of(replay(rules, text, []), ("?", "?"), None, 1)
    record = import_moves(text, rules)
    return _game_of(replay(rules, None, record.moves), ("?", "?"), record.result, 1)


def _of_records(text: str, number: int) -> dict[str, Any]:
    wanted, count = None, 0
    if "\n" in text and not text.partition("\n")[0].rstrip().endswith("}"):
        text = " ".join(text.split("\n"))  # one record, laid out over several lines
    for count, record in enumerate(read_records(io.StringIO(text + "\n"), replay=False), start=1):
        if count == number:
            wanted = record
    if wanted is None:
        raise RequestError(f"the text has {count} records, and no record {number}")
    game = replay(wanted.rules, wanted.start, wanted.moves)
    names = (wanted.players[0].name, wanted.players[1].name)
    return _game_of(game, names, wanted.result, count)


def _game_of(game: Replay, players: tuple[str, str], result: Result | None, records: int) -> dict[str, Any]:
    told = None if result is None else {"winner": result.winner, "reason": result.reason}
    return {
        "rules": rules_data(game.rules),
        "start": game.start,
        "moves": list(game.moves),
        "players": players,
        "result": told,
        "records": records,
    }


def exported(query: ExportQuery) -> dict[str, Any]:
    """The game as a record of JSON, as a list of moves, and its last position as text."""
    game, _ = query.game()
    last = game.position(len(game.actions))
    result = None
    if last.winner is not None:
        result = Result(last.winner, "played out")
    elif query.resigned is not None:
        result = Result(1 - query.resigned, "resigned")
    first, second = (PlayerInfo(name) for name in query.players)
    date = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    record = GameRecord(game.rules, game.moves, result, (first, second), game.start, date=date, replay=False)
    return {"record": format_record(record), "moves": move_list(game), "position": last.text()}
