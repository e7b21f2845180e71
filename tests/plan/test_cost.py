"""The cost model against the thesis's own numbers, and what follows for the choice."""

from __future__ import annotations

import pytest

from penstock.errors import PlanError
from penstock.model.progress import Ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.time import Domain
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.cost import Choice, Volume, Work, choose_aggregate, choose_spark
from penstock.plan.nodes import WindowAggregate
from penstock.plan.windows import SlidingWindow
from penstock.sql.binder import bind

SCHEMA = schema_of(
    [("t", "bigint"), ("g", "string"), ("x", "double"), ("v", "bigint"), ("s", "string"), ("d", "decimal(10,2)")], "t"
)


class Latest:
    """A user's aggregate that cannot be taken out."""

    def lift(self, value: object) -> object:
        return value

    def combine(self, left: object, right: object) -> object:
        return right

    def lower(self, partial: object) -> object:
        return partial


class Total(Latest):
    """A user's aggregate that can."""

    def combine(self, left: int, right: int) -> int:  # type: ignore[override]
        return left + right

    def invert(self, total: int, leaving: int) -> int:
        return total - leaving


def catalog() -> Catalog:
    made = Catalog()
    made.add_stream(StreamInfo("s", SCHEMA, Ordered(), StreamProperties()))
    made.aggregates |= {"latest": (Latest(), SCHEMA["v"].type), "total": (Total(), SCHEMA["v"].type)}
    return made


def node(select: str, range_: int, slide: int, by: str = "") -> WindowAggregate:
    sql = f"SELECT {select} AS r [RANGE {range_}, SLIDE {slide}, WA t] FROM s{f' GROUP BY {by}' if by else ''}"
    (found,) = [n for n in bind(sql, catalog()).walk() if isinstance(n, WindowAggregate)]
    return found


def chosen(select: str, range_: int, slide: int, volume: Volume | None = None, by: str = "") -> Choice:
    return choose_aggregate(node(select, range_, slide, by), catalog(), volume or Volume())


def work(range_: int, slide: int, rows: float = 20, groups: float = 1) -> Work:
    return Work(SlidingWindow("t", Domain.INTEGER, range_, slide), Volume(rows, groups))


def test_panes_per_slide_as_in_the_thesis() -> None:
    # 6.2.3: when range is 9 minutes and slide is 6, the pane is 3 minutes and there are 2 panes per slide.
    found = work(9, 6)
    assert (found.panes, found.new_panes) == (3, 2)


def test_the_formulas_on_q6_3() -> None:
    # RANGE 4, SLIDE 1: 4 panes of G groups. A window takes in 4·G tuples from its panes; differentially, 2·G.
    found = work(4, 1, rows=100, groups=10)
    assert found.each_row_in_each_window == 400  # 6.3: T
    assert found.combined == 100 + 4 * 10  # 6.1: T/P + P·G
    assert found.differential == 100 + 2 * 10  # 6.2: T/P + 2·G·SLIDE/GCD
    assert found.buffered == 2 * 100  # 6.4: 2·SLIDE·T/RANGE


def test_panes_give_nothing_where_every_row_is_a_group() -> None:
    # 6.2.3: "in the extreme case where every group contains a single tuple … panes provide no benefit"
    found = work(4, 1, rows=10, groups=10)
    assert found.combined > found.each_row_in_each_window
    assert found.differential > found.buffered
    assert work(4, 1, rows=10, groups=4).differential < work(4, 1, rows=10, groups=4).buffered


def test_panes_give_nothing_where_a_window_is_one_pane() -> None:
    assert work(5, 5).combined > work(5, 5).each_row_in_each_window
    assert chosen("max(s)", 5, 5).name == "wid"


def test_the_measured_ratio_of_panes_to_wid_is_near_the_models() -> None:
    # Fig. 6-15: about 0.3 at 20 tuples per pane and 5 panes per window.
    found = work(5, 1)
    assert found.combined / found.each_row_in_each_window == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("range_", "slide", "name"),
    [
        (10, 1, "paned differential"),  # 2 against 10
        (10, 2, "paned differential"),  # 5 panes, 1 new: 2 against 5
        (10, 9, "paned"),  # 10 panes, 9 new: 18 against 10
        (10, 6, "paned"),  # 5 panes, 3 new: 6 against 5
        (10, 5, "paned"),  # 2 panes, 1 new: 2 against 2
        (10, 10, "wid"),
    ],
)
def test_functions_are_taken_out_only_where_that_costs_less(range_: int, slide: int, name: str) -> None:
    assert chosen("sum(d)", range_, slide).name == name


def test_with_range_10_and_slide_9_ten_combinations_are_told_beside_eighteen() -> None:
    found = chosen("sum(d)", 10, 9)
    assert found.costs == {"wid": 200, "paned": 180 + 10, "paned differential": 180 + 18}
    assert str(found) == "paned, cost 190 against 200 for wid, 198 for paned differential"


def test_a_user_aggregate_is_taken_out_if_it_says_how() -> None:
    assert chosen("total(v)", 10, 1).name == "paned differential"
    assert chosen("latest(v)", 10, 1).name == "paned"
    assert "paned differential" not in chosen("latest(v)", 10, 1).costs


def test_arrays_are_taken_where_every_function_has_an_array_form_and_groups_can_be_told_apart() -> None:
    assert chosen("sum(v)", 10, 1).name == "columnar"
    assert chosen("sum(x)", 10, 1).costs["columnar"] == pytest.approx((20 + 3) / 20)  # two stacks
    assert chosen("sum(v)", 10, 1).costs["columnar"] == pytest.approx((20 + 2) / 20)  # taken out
    assert "columnar" not in chosen("sum(d)", 10, 1).costs
    assert "columnar" not in chosen("sum(v)", 10, 1, by="x").costs
    assert "columnar" in chosen("sum(v)", 10, 1, by="g").costs


def test_gaps_between_windows_cost_nothing() -> None:
    # RANGE 4, SLIDE 6: panes of 2, of which windows hold 2 of 3.
    assert work(4, 6).new_panes == 2
    assert work(4, 6).new_rows == 40


def test_many_groups_make_combining_dear() -> None:
    assert chosen("max(s)", 4, 1, Volume(20, 1)).name == "paned"
    assert chosen("max(s)", 4, 1, Volume(20, 16)).name == "wid"


@pytest.mark.parametrize(
    ("select", "range_", "slide", "name"),
    [
        ("sum(v)", 10, 1, "slide"),
        ("sum(v), count(DISTINCT s) AS n", 10, 1, "slide and differences"),
        ("sum(d)", 10, 1, "copy panes"),
        ("max(s)", 10, 1, "copy panes"),
        ("avg(d)", 10, 1, "copy rows"),
        ("sum(d), count(DISTINCT s) AS n", 10, 1, "copy rows"),
        ("sum(v)", 10, 10, "copy rows"),
    ],
)
def test_sparks_ways(select: str, range_: int, slide: int, name: str) -> None:
    first, _, rest = select.partition(", ")
    made = node(f"{first} AS q{', ' + rest.removesuffix(' AS n') if rest else ', count(*)'}", range_, slide)
    assert choose_spark(made, catalog(), Volume()).name == name


@pytest.mark.parametrize(("rows", "groups"), [(0, 0), (5, 6), (5, 0), (-1, -1)])
def test_a_volume_has_rows_for_its_groups(rows: float, groups: float) -> None:
    with pytest.raises(PlanError, match="at least one group") as error:
        Volume(rows, groups)
    assert f"{rows:g} rows in {groups:g} groups" in error.value.got
