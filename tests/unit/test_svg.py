"""Positions as SVG: well-formed, self-contained, complete, legible."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_positions import positions
from lifeline.errors import NotationError
from lifeline.render import status_text
from lifeline.rules import Position, Rules
from lifeline.svg import board_svg, contrast_ratio, heat_colour

README_GAME = "c4,g3 d6,f2 e5 e3 d3 c6 f5 h1 h5 a2 b1 d2 c3 i5 g6 e9 h6 g7 c7 a1 h2 a5"
NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(position, **options):
    return ElementTree.fromstring(board_svg(position, **options))


def tags(root, name):
    return root.findall(f".//{NAMESPACE}{name}")


def texts(root):
    return [element.text for element in tags(root, "text")]


def midgame():
    position = Position.start(Rules(5))
    for move in ("c4,g3", "d6,f2", "e5", "e3", "d3", "c6", "f5"):
        position = position.play(move)
    return position


def cell(position, label):
    return position.rules.board.cell(label)


@given(positions(), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_any_position_is_drawn_whole_inside_its_box_and_always_alike(position, coordinates, labels, legal, seed):
    count = position.rules.num_cells
    options = {
        "coordinates": coordinates,
        "labels": labels,
        "legal": legal,
        "heat": {seed % count: (seed % 101) / 100},
        "last": [seed % position.rules.num_actions],
    }
    text = board_svg(position, **options)
    assert text == board_svg(position, **options)
    root = ElementTree.fromstring(text)
    assert len(tags(root, "path")) == count
    by_fill = [c.get("fill") for c in tags(root, "circle")]
    assert by_fill.count("#1a1a1a") == position.stones.count("b")
    left, top, width, height = map(float, root.get("viewBox").split())
    assert (left, top) == (0, 0)
    for circle in tags(root, "circle"):
        x, y, r = (float(circle.get(k)) for k in ("cx", "cy", "r"))
        assert r <= x <= width - r
        assert r <= y <= height - r
    for written in tags(root, "text"):
        assert 4 <= float(written.get("x")) <= width - 4
        assert 8 <= float(written.get("y")) <= height - 4
    for path in tags(root, "path"):
        numbers = [float(n) for n in re.findall(r"[0-9.]+", path.get("d"))]
        assert min(numbers) > 0
        assert max(numbers[0::2]) < width
        assert max(numbers[1::2]) < height


def test_it_needs_nothing_from_elsewhere_and_repeats_no_id():
    text = board_svg(midgame(), labels=True, legal=True, heat={0: 0.5})
    for word in ("href", "url(", "<style", "<script", "<image", " id=", "&#", "<!"):
        assert word not in text
    assert text.count("http") == 1  # the namespace


def test_stones_stand_where_the_board_says():
    position = midgame()
    root = drawn(position)
    centre = {}
    for path in tags(root, "path"):
        numbers = [float(n) for n in re.findall(r"[0-9.]+", path.get("d"))]
        centre[path[0].text] = (sum(numbers[0::2]) / 6, sum(numbers[1::2]) / 6)
    fills = {}
    for circle in tags(root, "circle"):
        at = (float(circle.get("cx")), float(circle.get("cy")))
        fills[min(centre, key=lambda label: abs(centre[label][0] - at[0]) + abs(centre[label][1] - at[1]))] = circle
    assert {label: circle.get("fill") for label, circle in fills.items()} == {
        position.rules.board.labels[c]: {"b": "#1a1a1a", "w": "#ffffff"}[s]
        for c, s in enumerate(position.stones)
        if s != "."
    }
    # Rows from the bottom, places from the left.
    assert centre["a1"][1] > centre["b1"][1] > centre["i1"][1]
    assert centre["e1"][0] < centre["e2"][0] < centre["e9"][0]
    assert centre["a1"][0] == pytest.approx((centre["b1"][0] + centre["b2"][0]) / 2, abs=0.01)


def test_row_letters_and_place_numbers_can_be_left_out():
    position = Position.start(Rules(3))
    assert texts(drawn(position, caption="")) == ["e", "d", "c", "b", "a", "1", "2", "3", "1", "2", "3"]
    assert texts(drawn(position, caption="", coordinates=False)) == []


def test_each_cell_can_be_labelled():
    position = midgame()
    assert texts(drawn(position, labels=True, coordinates=False, caption="")) == list(position.rules.board.labels)


def test_both_stones_of_a_first_turn_are_ringed_and_a_swap_is_not():
    position = Position.start(Rules(3)).play("b1,d3")
    rings = tags(drawn(position, last=[cell(position, "b1"), cell(position, "d3")]), "circle")[2:]
    assert len(rings) == 2
    assert len(tags(drawn(position.play("swap"), last=[19]), "circle")) == 2


def test_a_vanished_stone_is_ringed_too():
    assert len(tags(drawn(Position.start(Rules(3)), last=[4]), "circle")) == 1


def test_legal_cells_have_a_dot_each():
    position = midgame()
    stones = len(position.stones) - position.stones.count(".")
    legal = sum(action < position.rules.num_cells for action in position.legal_actions())
    assert len(tags(drawn(position, legal=True), "circle")) == stones + legal


def test_heat_is_written_in_per_cent_and_cells_without_keep_their_colour():
    position = Position.start(Rules(3))
    root = drawn(position, heat={0: 0.0, 1: 0.004, 2: 0.005, 3: 0.994, 4: 1.0}, coordinates=False, caption="")
    assert texts(root) == ["0%", "<1%", "1%", "99%", "100%"]
    fills = [path.get("fill") for path in tags(root, "path")]
    assert fills[:5] == [heat_colour(v) for v in (0.0, 0.004, 0.005, 0.994, 1.0)]
    assert set(fills[5:]) == {None}


def test_the_ramp_darkens_all_the_way_and_what_is_written_on_it_can_be_read():
    colours = [heat_colour(i / 1000) for i in range(1001)]
    against_white = [contrast_ratio(colour, "#ffffff") for colour in colours]
    assert against_white == sorted(against_white)
    assert against_white[0] < 1.1
    assert against_white[-1] > 12
    for i in range(1001):
        root = drawn(Position.start(Rules(3)), heat={0: i / 1000}, coordinates=False, caption="")
        assert contrast_ratio(tags(root, "text")[0].get("fill"), colours[i]) >= 4.5


@given(st.sampled_from("bw"), st.booleans())
def test_labels_on_stones_can_be_read(stone, heated):
    position = Position.start(Rules(3)).play("b1,d3").play("swap").play("a1,e3")
    at = position.stones.index(stone)
    root = drawn(position, labels=True, heat={at: 1.0} if heated else None, coordinates=False, caption="")
    ground = {"b": "#1a1a1a", "w": "#ffffff"}[stone]
    name = position.rules.board.labels[at]
    written = next(t for t in tags(root, "text") if t.text == name)
    assert contrast_ratio(written.get("fill"), ground) > 7


def test_title_and_description_say_what_is_seen():
    position = midgame()
    root = drawn(position, last=[cell(position, "f5")], heat={0: 0.25})
    assert root.get("role") == "img"
    assert [child.tag for child in root[:2]] == [NAMESPACE + "title", NAMESPACE + "desc"]
    assert root[0].text == f"Lifeline, base 5: {status_text(position)}"
    for part in (
        "Black stones: g3, f5, e5, d3, c4.",
        "White stones: f2, e3, d6, c6.",
        "Last move: f5.",
        "Values: i1 25%.",
        position.text(),
    ):
        assert part in root[1].text


def test_a_caption_is_escaped_whatever_it_is():
    caption = "<script>alert('&\"')</script> \x00\x1b\ud800 ]]> ● 漢"
    text = board_svg(midgame(), caption=caption)
    root = ElementTree.fromstring(text.encode())
    assert "<script" not in text
    assert root[0].text == "Lifeline, base 5: <script>alert('&\"')</script> \ufffd\ufffd\ufffd ]]> ● 漢"


def test_a_long_caption_is_broken_at_commas_first():
    position = Position.start(Rules(3)).play("b1,d3")
    assert texts(drawn(position))[-3:] == [
        "white (seat 1) to play,",
        "turn 2, first stone of two,",
        "may swap sides",
    ]


def test_the_picture_in_the_readme_is_drawn_by_the_code():
    position = Position.start(Rules(5))
    for move in README_GAME.split():
        position = position.play(move)
    picture = Path(__file__).parents[2] / "docs" / "pictures" / "position.svg"
    assert picture.read_text(encoding="utf-8") == board_svg(position, last=[cell(position, "a5")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heat": {19: 0.5}}, "no cell 19"),
        ({"heat": {-1: 0.5}}, "no cell -1"),
        ({"heat": {0: 1.01}}, "the heat of e1 must be a number from 0 to 1, not 1.01"),
        ({"heat": {0: float("nan")}}, "not nan"),
        ({"last": [21]}, "no action 21"),
        ({"last": [-1]}, "no action -1"),
    ],
)
def test_what_is_not_on_the_board_is_refused(options, message):
    with pytest.raises(NotationError, match=re.escape(message)):
        board_svg(Position.start(Rules(3)), **options)
