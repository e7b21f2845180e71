"""Drawings: whatever things are called, each format reads back what was said, and nothing in the SVG overlaps."""

from __future__ import annotations

import html
import json
import re
from itertools import combinations
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import StreamError
from penstock.monitor.of_graph import short, time_of
from penstock.monitor.picture import Box, Line, Picture
from penstock.monitor.wording import broken, columns, cut, on_one_line
from tests.profiles import examples

HOSTILE = [
    'a "quoted" name',
    "it's <b>bold</b> & [bracketed] (round) {curly}",
    "two\nlines\tand a tab",
    "数量 и дружба ñ é ß 🚰",
    "back\\slash \\N \\n `tick` #35; &amp; %% --> |bar| ;",
    "]]> <!-- --> <script>alert(1)</script>",
    "null\x00 bell\x07 surrogate\ud800 reversed\u202e",
    "end",
    "",
    "w" * 200,
]


def hostile() -> Picture:
    boxes = [Box(f"n{at}", "operator", name, (name,), is_shared=at % 2 == 0) for at, name in enumerate(HOSTILE)]
    kinds: list[Any] = ["arc", "break", "queue", "result"]
    lines = [Line(f"n{at}", f"n{at + 1}", kinds[at % 4], name) for at, name in enumerate(HOSTILE[:-1])]
    return Picture(tuple(boxes), tuple(lines))


def test_svg_holds_hostile_names() -> None:
    texts = [each.text or "" for each in ET.fromstring(hostile().svg).iter("{http://www.w3.org/2000/svg}text")]
    together = "".join(texts).replace(" ", "")
    for name in HOSTILE:
        assert together.count(on_one_line(name).replace(" ", "")) >= 2  # as a title and as a detail
    assert "<script" not in hostile().svg


def test_mermaid_holds_hostile_names() -> None:
    lines = hostile().mermaid.split("\n")
    assert lines[0] == "flowchart TD"
    for at, name in enumerate(HOSTILE):
        found = re.fullmatch(rf'    n{at}\["([^"]*)<br/>([^"]*)"\]', lines[1 + at])
        assert found is not None, lines[1 + at]
        for text in found.groups():
            assert re.fullmatch(r"(?:#\d+;|[^\x00-\x7f]|[A-Za-z0-9 ,.])*", text)
            assert html.unescape(re.sub(r"#(\d+);", r"&#\1;", text)) == on_one_line(name)
    assert lines[1 + len(HOSTILE)] == '    n0 -->|"a #34;quoted#34; name"| n1'
    assert lines[-1] == "    class n0,n2,n4,n6,n8 shared"


def test_dot_holds_hostile_names() -> None:
    lines = hostile().dot.split("\n")
    assert lines[0] == "digraph penstock {"
    assert lines[-1] == "}"
    for at, name in enumerate(HOSTILE):
        (label,) = re.findall(r'label="((?:[^"\\]|\\.)*)"', lines[3 + at])
        assert re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label) == "\n".join([on_one_line(name)] * 2)
    assert lines[3 + len(HOSTILE)] == '    n0 -> n1 [style=solid, label="a \\"quoted\\" name"];'


def test_json_and_text_hold_hostile_names() -> None:
    found = json.loads(hostile().json.encode("utf-8", "surrogatepass"))
    assert [box["title"] for box in found["boxes"]] == HOSTILE
    assert found["lines"][1] == {"source": "n1", "target": "n2", "kind": "break", "label": HOSTILE[1]}
    lines = hostile().text.split("\n")
    assert lines[0] == "w" * 200
    assert all(line.isprintable() for line in lines)


NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")
Rectangle = tuple[float, float, float, float]


def rectangles(root: ET.Element) -> tuple[list[Rectangle], list[Rectangle]]:
    """Of boxes, and of texts as wide as they say that they are."""
    boxes, texts = [], []
    for each in root.iter():
        tag, at = each.tag.split("}")[1], {k: float(v) for k, v in each.items() if NUMBERS.fullmatch(v)}
        if tag == "rect" and "x" in at:
            boxes.append((at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"]))
        elif tag == "text":
            texts.append((at["x"] - at["textLength"] / 2, at["y"] - 10, at["x"] + at["textLength"] / 2, at["y"] + 3))
    return boxes, texts


def overlap(one: Rectangle, other: Rectangle) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def points(path: str) -> list[tuple[float, float]]:
    """Along the lines of a path, of the signs that are used here."""
    found: list[tuple[float, float]] = []
    x = y = 0.0
    for sign, rest in re.findall(r"([MVC])([^MVC]*)", path):
        numbers = [float(each) for each in NUMBERS.findall(rest)]
        if sign == "M":
            x, y = numbers
        elif sign == "V":
            found += [(x, y + (numbers[0] - y) * part / 8) for part in range(9)]
            y = numbers[0]
        else:
            x1, y1, x2, y2, x3, y3 = numbers
            for step in range(17):
                b = step / 16
                a = 1 - b
                weights = (a**3, 3 * a * a * b, 3 * a * b * b, b**3)
                px = sum(w * c for w, c in zip(weights, (x, x1, x2, x3), strict=True))
                py = sum(w * c for w, c in zip(weights, (y, y1, y2, y3), strict=True))
                found.append((px, py))
            x, y = x3, y3
    return found


def check_nothing_overlaps(picture: Picture) -> None:
    root = ET.fromstring(picture.svg)
    boxes, texts = rectangles(root)
    assert len(boxes) == len(picture.boxes)
    assert not any(overlap(one, other) for one, other in combinations(boxes, 2))
    assert not any(overlap(one, other) for one, other in combinations(texts, 2))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for left, top, right, bottom in texts:
        assert left >= -16
        assert top >= -16
        assert right <= width
        assert bottom <= height
        inside = [b for b in boxes if overlap(b, (left, top, right, bottom))]
        assert len(inside) <= 1
        assert all(b[0] <= left and b[1] <= top and b[2] >= right and b[3] >= bottom for b in inside)
    inner = [(b[0] + 1, b[1] + 1, b[2] - 1, b[3] - 1) for b in boxes]
    for each in root.iter("{http://www.w3.org/2000/svg}path"):
        if each.attrib["fill"] != "none":
            continue
        for x, y in points(each.attrib["d"]):
            spot = (x, y, x, y)
            assert not any(overlap(box, spot) for box in inner), "a line crosses a box"
            assert not any(overlap(text, spot) for text in texts), "a line crosses a text"


TEXTS = st.text(st.sampled_from('abc σ→数🚰"<&\n'), max_size=70)


@st.composite
def pictures(draw: Any) -> Picture:
    count = draw(st.integers(1, 12))
    kinds = st.sampled_from(["stream", "operator", "query"])
    details = st.lists(TEXTS, max_size=3).map(tuple)
    boxes = [Box(str(at), draw(kinds), draw(TEXTS), draw(details)) for at in range(count)]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda each: each[0] < each[1])
    pairs = draw(st.lists(ends, max_size=18)) if count > 1 else []
    label = st.one_of(st.just(""), TEXTS)
    return Picture(tuple(boxes), tuple(Line(str(a), str(b), "arc", draw(label)) for a, b in pairs))


@examples(15)
@given(pictures())
def test_in_svg_no_text_lies_on_another_and_no_line_crosses_a_box(picture: Picture) -> None:
    check_nothing_overlaps(picture)


def test_a_text_is_broken_by_columns() -> None:
    assert columns("aé数\u0301") == 4
    assert broken("one two three", 7) == ["one two", "three"]
    assert broken("数量数量", 4) == ["数量", "数量"]
    assert broken("", 4) == [""]
    assert cut("数量数量", 5) == "数量…"
    assert cut("abc", 3) == "abc"


def test_numbers_for_people() -> None:
    assert [short(n) for n in (0, 7, 999, 1000, 1234, 12_345, 2.5e6)] == [
        "0",
        "7",
        "999",
        "1k",
        "1.23k",
        "12.3k",
        "2.5M",
    ]
    assert [time_of(s) for s in (2.0, 0.0123, 4.5e-6, 3e-9)] == ["2 s", "12.3 ms", "4.5 µs", "3 ns"]


ROWS = [{"t": t, "k": t % 2, "v": t} for t in range(40)]


class Tap:
    """A source that gives what there is and is then idle."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def poll(self) -> Any:
        return self.items.pop(0) if self.items else pk.IDLE


def flow_of_two(source: Any = ROWS) -> tuple[pk.Flow, Any, Any]:
    flow = pk.Flow().stream("s", source, time="t", schema="t bigint, k bigint, v bigint")
    flow.stream("unread", ROWS, time="t")
    count = flow.query("SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s WHERE v > 3 GROUP BY k", name="count")
    return flow, count, flow.query("SELECT t, v FROM s WHERE v > 3", name='the "rest"')


def test_a_flow_draws_its_queries_as_they_would_run() -> None:
    flow, count, rest = flow_of_two()
    found = flow.graph()
    kinds = [box.kind for box in found.boxes]
    assert (kinds.count("stream"), kinds.count("query")) == (2, 2)
    (select,) = [box for box in found.boxes if "Select" in box.title]
    assert select.is_shared
    assert select.details == ('shared by count, the "rest"',)
    assert [line.target for line in found.lines if line.source == select.name] == ["Σ2", "Σ3"]
    assert [line.label for line in found.lines] == [""] * len(found.lines)
    assert not any(box.is_shared for box in flow.graph(count).boxes)
    check_nothing_overlaps(found)
    del count, rest
    assert [box.title for box in flow.graph().boxes] == ["Source s", "Source unread"]


def test_a_run_draws_what_runs_with_what_is_known_of_it() -> None:
    flow, count, rest = flow_of_two(Tap(list(ROWS)))
    with flow.start({count: [], rest: []}) as run:
        run.process_available()
        run.break_after("Σ1")
        found, own = run.graph(), run.runs["count"].graph()
    (select,) = [box for box in found.boxes if "Select" in box.title]
    assert select.details[1].startswith("40 rows in, 36 out")
    breaks = [line for line in found.lines if line.kind == "break"]
    assert [line.source for line in breaks] == ["Σ1", "Σ1"]
    assert all(line.label.startswith("break") for line in breaks)
    check_nothing_overlaps(found)
    assert [box.title for box in own.boxes if box.kind == "query"] == ["query count"]
    with flow_of_two(Tap(list(ROWS)))[1].start([]) as alone:
        pass
    assert alone.graph().boxes[-1].title == "query count"
    bundle = found._repr_mimebundle_()
    assert bundle["image/svg+xml"] == found._repr_svg_() == found.svg
    assert found.svg in found._repr_html_()
    assert bundle["text/plain"] == repr(found) == str(found) == found.text
    assert list(found._repr_mimebundle_(include={"text/plain"})) == ["text/plain"]
    assert list(found._repr_mimebundle_(exclude={"text/plain"})) == ["image/svg+xml", "text/html"]


def test_a_merge_and_a_queue_are_drawn_with_their_quantities() -> None:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, [{"t": t, "v": t} for t in range(20)], time="t")
    flow.merge("m", ["a", "b"], key=["v"], algorithm="R3")
    run = flow.start({flow.query("SELECT t, v FROM m", name="merged"): []})
    run.wait()
    (merge,) = [box for box in run.graph().boxes if "w 0, d 0, g 0, h 0" in "".join(box.details)]
    assert "0 adjusts out, 0 removals, 0 held back" in merge.details


def test_only_queries_of_the_flow_are_drawn() -> None:
    flow, _, _ = flow_of_two()
    _, other, _ = flow_of_two()
    with pytest.raises(StreamError) as told:
        flow.graph(other)
    assert (told.value.what, told.value.where) == ("Not a query of this flow.", "flow.graph")
    assert told.value.hint == "flow.query('SELECT …')"


def test_a_query_that_cannot_share_is_drawn_by_itself() -> None:
    flow = pk.Flow().stream("s", ROWS, time="t", update_key="k")
    flow.conflate("q", "s", key="k", windows="lazy")
    count = flow.query("SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM q GROUP BY k", name="count")
    found = flow.graph(count)
    assert [line.label for line in found.lines if line.kind == "queue"] == ["queue"]
    run = count.start([])
    run.wait()
    assert any(line.kind == "queue" for line in run.graph().lines)
    check_nothing_overlaps(run.graph())
