"""Tables in FROM: how they are joined, as of which time, and what is refused."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError, StreamError
from penstock.model.progress import bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.join_nodes import Band, Join
from penstock.plan.lookup_nodes import Lookup, TableInfo, lookups
from penstock.plan.nodes import AlterLifetime, Select, WindowAggregate
from penstock.sql.binder import bind

STREAM = schema_of([("t", "bigint"), ("k", "string"), ("v", "int"), ("at", "timestamp")], "t")
TABLE = schema_of([("k", "string"), ("n", "int"), ("wide", "bigint")])
VERSIONS = schema_of([("k", "string"), ("since", "bigint"), ("rate", "double")], "since")


def catalog() -> Catalog:
    result = Catalog()
    for name in ("x", "y"):
        result.add_stream(StreamInfo(name, STREAM, bounded(5), StreamProperties()))
    result.add_table(TableInfo("names", TABLE))
    result.add_table(TableInfo("rates", VERSIONS, ("k",), "since"))
    return result


def lookup(sql: str) -> Lookup:
    (found,) = lookups(bind(sql, catalog()))
    return found


@pytest.mark.parametrize(
    ("joined", "kind"),
    [
        ("x JOIN names n ON n.k = x.k", "inner"),
        ("x, names n WHERE n.k = x.k", "inner"),
        ("names n JOIN x ON n.k = x.k", "inner"),
        ("x LEFT JOIN names n USING (k)", "left"),
        ("names n RIGHT JOIN x ON n.k = x.k", "left"),
        ("x LEFT SEMI JOIN names n ON n.k = x.k", "semi"),
        ("x LEFT ANTI JOIN names n ON n.k = x.k", "anti"),
        ("x WHERE k IN (SELECT k FROM names)", "semi"),
        ("x WHERE NOT EXISTS (SELECT 1 FROM names n WHERE n.k = x.k)", "anti"),
    ],
)
def test_a_stream_is_joined_with_a_table_without_a_bound_on_times(joined: str, kind: str) -> None:
    found = lookup(f"SELECT v FROM {joined}")
    assert (found.kind, [(name, str(e)) for name, e in found.equal]) == (kind, [("k", "k")])
    assert found.condition is None


def test_conditions_on_both_of_an_inner_join_are_asked_afterwards_and_those_on_the_stream_before() -> None:
    plan = bind("SELECT v FROM x JOIN names ON names.k = x.k WHERE v > n AND x.v > 1", catalog())
    (found,) = lookups(plan)
    assert isinstance(found.input, Select)
    assert any(isinstance(node, Select) and node.input is found for node in plan.walk())


def test_what_is_equal_is_brought_to_one_type_and_stays_a_key() -> None:
    found = lookup("SELECT v FROM x JOIN names ON x.v = names.wide AND upper(names.k) = x.k")
    assert [str(e) for _, e in found.equal] == ["wide", "upper(k)"]
    found = lookup("SELECT v FROM x JOIN names ON x.t = names.n")
    assert [str(e) for _, e in found.equal] == ["CAST(n AS bigint)"]


def test_the_time_of_a_row_stays_and_progresses() -> None:
    plan = bind("SELECT n, count(*) AS c FROM x [RANGE TUMBLING 10, WA t] JOIN names USING (k) GROUP BY n", catalog())
    (window,) = [node for node in plan.walk() if isinstance(node, WindowAggregate)]
    assert window.window.columns == ("t",)
    altered = bind("SELECT v, n FROM x [RANGE 10] JOIN names USING (k)", catalog())
    assert any(isinstance(node, AlterLifetime) for node in altered.walk())


def test_streams_around_a_table_are_joined_by_their_own_windows() -> None:
    sql = "SELECT x.v FROM x [RANGE 3, WA t], names, y [RANGE 2, WA t] WHERE names.k = x.k AND y.k = names.k"
    (join,) = [node for node in bind(sql, catalog()).walk() if isinstance(node, Join)]
    assert join.near == Band(-2, 3)


def test_a_table_with_versions_is_read_as_of_a_column() -> None:
    found = lookup("SELECT v * rate AS r FROM x JOIN rates FOR SYSTEM_TIME AS OF x.t AS r ON x.k = r.k")
    assert (found.as_of, found.label) == ("t", "Lookup rates AS OF t ON x_k = r_k")
    assert lookup("SELECT v FROM x JOIN rates r ON x.k = r.k").as_of is None, "all versions"
    asked = "SELECT v FROM x WHERE EXISTS (SELECT 1 FROM rates FOR SYSTEM_TIME AS OF x.t r WHERE r.k = x.k)"
    assert lookup(asked).as_of == "t"


AS_OF = "SELECT 1 AS one FROM x JOIN {} ON {}"


@pytest.mark.parametrize(
    ("sql", "what", "column"),
    [
        ("SELECT k FROM names", "A table by itself is no stream", 15),
        ("SELECT n FROM names, rates", "A table by itself is no stream", 15),
        ("SELECT n FROM names, rates, x", "and so is the next", 15),
        ("SELECT v FROM x RIGHT JOIN names USING (k)", "which rows of a table have no partner", 28),
        ("SELECT v FROM x FULL JOIN names USING (k)", "which rows of a table have no partner", 27),
        ("SELECT v FROM names LEFT JOIN x USING (k)", "which rows of a table have no partner", 31),
        ("SELECT n FROM names LEFT SEMI JOIN x ON names.k = x.k", "which rows of a table have no partner", 36),
        ("SELECT n FROM names WHERE k IN (SELECT k FROM x)", "and so is the next", 15),
        ("SELECT count(*) AS c FROM x, names [RANGE 10, WA n]", "A window stands on a stream", 30),
        ("SELECT count(*) AS c FROM names [RANGE 10, WA n]", "A table by itself is no stream", 27),
        (AS_OF.format("names FOR SYSTEM_TIME AS OF x.t n", "n.k = x.k"), "Only a table with versions", 29),
        (AS_OF.format("y FOR SYSTEM_TIME AS OF x.t", "y.k = x.k AND y.t = x.t"), "Only a table with versions", 29),
        (AS_OF.format("rates FOR SYSTEM_TIME AS OF x.t + 1 r", "r.k = x.k"), "as of a column of the stream", 57),
        (AS_OF.format("rates FOR SYSTEM_TIME AS OF r.since r", "r.k = x.k"), "as of a column of the stream", 57),
        (AS_OF.format("rates FOR SYSTEM_TIME AS OF x.at r", "r.k = x.k"), "of different types", 57),
        (AS_OF.format("rates FOR SYSTEM_TIME AS OF x.t r", "r.rate = x.v"), "read by its key", 29),
        ("SELECT v FROM x UNION names", "A table by itself is no stream", None),
    ],
)
def test_what_has_no_meaning_is_refused(sql: str, what: str, column: int | None) -> None:
    with pytest.raises(QueryError, match=what) as caught:
        bind(sql, catalog())
    assert caught.value.hint
    assert column is None or caught.value.column == column


def test_a_name_is_of_one_thing() -> None:
    with pytest.raises(StreamError, match="There is a table of that name already"):
        catalog().add_stream(StreamInfo("Names", STREAM, bounded(5), StreamProperties()))
    with pytest.raises(StreamError, match="There is a stream of that name already"):
        catalog().add_table(TableInfo("X", TABLE))
