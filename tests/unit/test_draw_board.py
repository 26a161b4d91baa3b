"""A board in a terminal: hexagons where there is room and colour, plain text where there is not."""

import io
import itertools

import pytest
from rich.color import Color
from rich.console import Console
from rich.style import Style

from game_positions import play_randomly
from lifeline.play.console import PAINTED, SIXTEEN, Screen, draw_board
from lifeline.render import board_text
from lifeline.rules import Position, Rules
from lifeline.svg import contrast_ratio


def console(colours="truecolor", width=80, height=50, **options):
    """A console that keeps what is shown: a terminal unless told otherwise."""
    options = {"force_terminal": True, "_environ": {}} | options
    return Console(file=io.StringIO(), color_system=colours, width=width, height=height, record=True, **options)


def shown(position, *arguments, on=None, **options):
    """The lines of a drawing, without colours."""
    screen = on or console()
    draw_board(screen, position, *arguments, **options)
    return [line.rstrip() for line in screen.export_text().rstrip("\n").split("\n")]


def raw(position, *arguments, on, **options):
    draw_board(on, position, *arguments, **options)
    return on.file.getvalue()


def after(text, rules=None):
    position = Position.start(rules or Rules(3))
    for move in text.split():
        position = position.play(move)
    return position


def test_hexagons_with_labels_stones_and_both_stones_of_the_last_turn():
    position = after("b1,d3")
    last = [position.rules.board.cell(label) for label in ("b1", "d3")]
    assert shown(position, last) == [
        "           1   2   3",
        "        ╱ ╲ ╱ ╲ ╱ ╲",
        "     e │e1 │e2 │e3 │ 3",
        "      ╱ ╲ ╱ ╲ ╱ ╲ ╱ ╲",
        "   d │d1 │d2 │(●)│d4 │ 4",
        "    ╱ ╲ ╱ ╲ ╱ ╲ ╱ ╲ ╱ ╲",
        " c │c1 │c2 │c3 │c4 │c5 │ 5",
        "    ╲ ╱ ╲ ╱ ╲ ╱ ╲ ╱ ╲ ╱",
        "   b │(●)│b2 │b3 │b4 │ 4",
        "      ╲ ╱ ╲ ╱ ╲ ╱ ╲ ╱",
        "     a │a1 │a2 │a3 │ 3",
        "        ╲ ╱ ╲ ╱ ╲ ╱",
        "           1   2   3",
        "white (seat 1) to play, turn 2, first stone of two, may swap sides",
    ]


def test_a_cell_where_no_stone_may_be_placed_has_no_label():
    position = after("c3")
    lines = "\n".join(shown(position))
    geometry = position.rules.board
    barred = {geometry.labels[c] for c in geometry.neighbors[geometry.cell("c3")]} | {"c3"}
    for label in geometry.labels:
        assert (label in lines) == (label not in barred), label


def test_labels_of_three_characters_fit_their_cells():
    lines = shown(after("a1,l5 swap", Rules(8)), on=console(width=90, height=50))
    assert "│h8 │h9 │h10│h11│" in "".join(lines)
    walls = [[at for at, sign in enumerate(line) if sign == "│"] for line in lines]
    assert all(b - a == 4 for line in walls for a, b in itertools.pairwise(line))


@pytest.mark.parametrize("size", [{"width": 43}, {"height": 23}], ids=["narrow", "low"])
def test_a_small_terminal_gets_the_lines_of_plain_text(size):
    position = play_randomly(Position.start(Rules(5)), 25, 1)
    last = [c for c, stone in enumerate(position.stones) if stone == "w"][:1]
    assert "╱" in "".join(shown(position, last, on=console(width=44, height=24)))
    small = console("standard", **{"width": 44, "height": 24} | size)
    assert shown(position, last, on=small) == board_text(position, last=last[0]).split("\n")


@pytest.mark.parametrize("base", [3, 7, 12])
def test_no_line_is_wider_than_the_room_that_is_asked_for(base):
    position = Position.start(Rules(base))
    assert max(map(len, shown(position, on=console(width=8 * base + 4))[:-1])) <= 8 * base + 4
    assert len(shown(position, on=console(width=8 * base + 4))) + 2 <= 4 * base + 4


PLAIN = {
    "a pipe": {"force_terminal": False},
    "NO_COLOR": {"_environ": {"NO_COLOR": "1"}},
    "a terminal without colours": {"colours": None},
}


@pytest.mark.parametrize("options", PLAIN.values(), ids=PLAIN)
def test_without_colours_it_is_plain_text_to_the_byte(options):
    position = after("b1,d3 swap")
    assert raw(position, [5], on=console(**options)) == board_text(position, last=5) + "\n"


def test_ascii_is_ascii_in_colour_terminals_too():
    position = after("b1,d3 swap")
    assert raw(position, on=console(), ascii_signs=True) == board_text(position, ascii=True) + "\n"


def test_a_terminal_that_writes_no_unicode_gets_ascii():
    class Latin(io.StringIO):
        encoding = "latin-1"

    screen = Console(file=Latin(), force_terminal=True, color_system="256", width=80, height=50, _environ={})
    assert raw(after("b1,d3"), on=screen) == board_text(after("b1,d3"), ascii=True) + "\n"


def colour(style, part="color"):
    found = getattr(Style.parse(style), part)
    return "#{:02x}{:02x}{:02x}".format(*found.get_truecolor())


def test_the_painted_board_is_readable_and_the_same_in_all_terminals():
    ground = colour(PAINTED.ground, "bgcolor")
    assert contrast_ratio(colour(PAINTED.legal), ground) >= 4.5
    assert contrast_ratio(colour(PAINTED.stones["b"]), ground) >= 4.5
    assert contrast_ratio(colour(PAINTED.stones["w"]), ground) >= 3
    assert contrast_ratio(colour(PAINTED.last), ground) >= 3
    styles = [PAINTED.ground, PAINTED.wall, PAINTED.legal, PAINTED.barred, PAINTED.last, *PAINTED.stones.values()]
    named = [c for s in styles for c in (Style.parse(s).color, Style.parse(s).bgcolor) if c is not None]
    assert all((c.number or 0) >= 16 for c in named)


def test_stones_on_a_painted_board_are_black_and_white():
    written = raw(after("c3"), on=console("256"))
    assert "\x1b[38;5;16;48;5;137m ● " in written
    assert "\x1b[1;38;5;231;48;5;137m ● " in raw(after("a1,a3 c3"), on=console("256"))


def test_sixteen_colours_have_no_ground_and_two_signs():
    """Its owner chose them: a ground might swallow a stone."""
    position = after("a1,a3 c3")
    written = raw(position, on=console("standard"))
    assert "●" in written
    assert "○" in written
    assert "\x1b[4" not in written
    assert all(Color.parse(c).number < 16 for c in ("blue", "yellow", "magenta", "bright_black"))
    assert SIXTEEN.signs["b"] != SIXTEEN.signs["w"]


def test_a_game_without_legal_cells_is_drawn():
    position = after("a1 e1 a2 e3", Rules(3, "weak_pie"))
    assert position.is_over
    assert shown(position)[-1] == "white (seat 1) has won after 4 turns"


def test_waiting_is_shown_in_terminals_only():
    pipe, terminal = console(force_terminal=False), console()
    with Screen(pipe).waiting("bot"):
        pass
    assert pipe.file.getvalue() == ""
    with Screen(terminal).waiting("[bot]"):
        pass
    assert "[bot] thinks" in terminal.file.getvalue()
