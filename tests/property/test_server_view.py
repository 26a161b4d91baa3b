"""What a page is told is what the rules say, in any position."""

from hypothesis import given, settings
from hypothesis import strategies as st

from game_positions import positions, rules
from lifeline import Position
from lifeline.movelist import import_moves
from lifeline.play.server_view import game_data, move_list, replay


@settings(max_examples=50)
@given(positions(rules([3, 4, 5, 7])))
def test_legal_cells_and_what_they_take_are_those_of_the_rules(position):
    text = position.text()
    told = game_data(replay(position.rules, text, []), 0)
    legal = position.legal_moves()
    assert told["legal"] == [move for move in legal if move not in ("swap", "komi")]
    assert (told["may_swap"], told["may_spend"]) == ("swap" in legal, "komi" in legal)
    assert told["position"] == text
    labels = position.rules.board.labels
    for move in told["legal"][:12]:
        after = position.play(move)
        effect = told["effects"].get(move, {"captured": [], "lost": []})
        for label, stone, left in zip(labels, position.stones, after.stones, strict=True):
            before = position.colour if label == move else stone
            expected = "" if before == left else "lost" if before == position.colour else "captured"
            assert [label in effect["captured"], label in effect["lost"]] == [
                expected == "captured",
                expected == "lost",
            ]


@settings(max_examples=25)
@given(rules([3, 4, 5]), st.integers(0, 2**32 - 1))
def test_a_game_is_told_ply_by_ply_and_its_moves_are_read_back(rules, seed):
    moves, played = [], Position.start(rules)
    while not played.is_over and len(moves) < 40:
        legal = played.legal_moves()
        moves.append(legal[(seed >> len(moves) % 16) % len(legal)])
        played = played.play(moves[-1])
    game = replay(rules, None, moves)
    told = game_data(game, len(moves))
    assert told["position"] == played.text()
    current = Position.start(rules)
    for move, entry in zip(moves, told["moves"], strict=True):
        after = current.play(move)
        stones = sum(s != "." for s in current.stones) + (move not in ("swap", "komi"))
        assert entry == {
            "move": move,
            "colour": {"b": "black", "w": "white"}[current.colour],
            "seat": current.to_play,
            "turn": current.turn + 1,
            "stone": current.placed + 1,
            "removed": stones - sum(s != "." for s in after.stones),
        }
        current = after
    assert import_moves(move_list(game), rules).moves == tuple(moves)
