"""A drawn board reads as expected, down to the column."""

from lifeline.render import board_text, status_text
from lifeline.rules import Position, Rules


def test_base_3_board_with_the_last_stone_in_brackets():
    position = Position.start(Rules(3)).play("b1,d3")
    assert board_text(position, last=position.rules.board.cell("d3")).split("\n") == [
        "       1 2 3",
        "   e  · · ·  3",
        "  d  · ·(●)·  4",
        " c  · · · · ·  5",
        "  b  ● · · ·  4",
        "   a  · · ·  3",
        "       1 2 3",
        "white (seat 1) to play, turn 2, first stone of two, may swap sides",
    ]


def test_base_5_board_in_ascii_with_a_first_cell_marked():
    position = Position.start(Rules(5)).play("e5,i1").play("swap").play("a1")
    assert board_text(position, ascii=True, last=position.rules.board.cell("a1")).split("\n") == [
        "         1 2 3 4 5",
        "     i  X . . . .  5",
        "    h  . . . . . .  6",
        "   g  . . . . . . .  7",
        "  f  . . . . . . . .  8",
        " e  . . . . X . . . .  9",
        "  d  . . . . . . . .  8",
        "   c  . . . . . . .  7",
        "    b  . . . . . .  6",
        "     a (O). . . .  5",
        "         1 2 3 4 5",
        "white (seat 0) to play, turn 2, second stone",
    ]


def test_a_vanished_stone_and_a_last_cell_are_marked_too():
    position = Position.start(Rules(3))
    assert "   a  · ·(·) 3" in board_text(position, last=18).split("\n")


def test_swap_and_komi_mark_no_cell():
    position = Position.start(Rules(3)).play("b1,d3").play("swap")
    assert "(●)" not in board_text(position, last=position.rules.swap_action)
    assert board_text(position, last=position.rules.komi_action) == board_text(position)


def test_status_names_the_winner_by_colour_and_seat():
    after_swap = Position.start(Rules(3, "weak_pie")).play("a1").play("swap")
    position = after_swap.play("e1").play("a2").play("e3")
    assert position.is_over
    assert status_text(position) == "white (seat 0) has won after 4 turns"


def test_status_tells_the_komi_left():
    position = Position.start(Rules(3, "komi_pie", 7))
    assert status_text(position) == "black (seat 0) to play, turn 1, komi left 7"
    assert status_text(position.play("a1")) == "white (seat 1) to play, turn 2, komi left 7"


def test_a_place_beyond_nine_is_numbered_by_its_units():
    lines = board_text(Position.start(Rules(11))).split("\n")
    assert lines[0].split() == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "1"]
    assert [line.split()[-1] for line in lines[1:-2]] == [str(11 + min(k, 20 - k)) for k in range(21)]


def test_every_label_is_found_where_the_drawing_says():
    """The k-th sign in the line of a letter is the cell of that letter and k."""
    position = Position.start(Rules(4)).play("c2,e4").play("g1,a4")
    lines = {line.split()[0]: line.split()[1:-1] for line in board_text(position, ascii=True).split("\n")[1:-2]}
    for label, stone in zip(position.rules.board.labels, position.stones, strict=True):
        assert lines[label[0]][int(label[1:]) - 1] == {"b": "X", "w": "O", ".": "."}[stone]
