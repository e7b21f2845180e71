"""What is newest, how long it lives and what a conflated stream owes, by hand."""

from __future__ import annotations

import penstock as pk
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.plan.catalog import Catalog
from penstock.reference import evaluate
from penstock.reference.updates import last_values, owed
from penstock.sql.binder import bind

SCHEMA = schema_of([("ts", "bigint"), ("symbol", "string"), ("price", "int")], "ts")


def catalog() -> Catalog:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, [], schema="ts BIGINT, symbol STRING, price INT", time="ts", update_key="symbol")
    return flow.latest("now", "a").catalog


def test_a_union_drops_what_is_older_and_believes_the_one_that_is_named_first() -> None:
    #  a   IBM 24 at 9             IBM 26 at 11
    #  b               IBM 25 at 9              IBM 27 at 10   IBM 28 at 11
    # out  24                      26                                          b is never newer
    arrivals = [("a", (9, "IBM", 24)), ("b", (9, "IBM", 25)), ("a", (11, "IBM", 26))]
    arrivals += [("b", (10, "IBM", 27)), ("b", (11, "IBM", 28))]
    found = evaluate(bind("SELECT * FROM a UNION b", catalog()), arrivals)
    assert found == pk.tdb([pk.Insert((9, "IBM", 24), 9, 10), pk.Insert((11, "IBM", 26), 11, 12)])
    other = evaluate(bind("SELECT * FROM b UNION a", catalog()), arrivals)
    prices = [(9, 24), (9, 25), (11, 26), (11, 28)]  # what b says of an instant takes the place of what a said
    assert other == pk.tdb([pk.Insert((ts, "IBM", price), ts, ts + 1) for ts, price in prices])


def test_an_update_lives_until_the_next_of_its_key() -> None:
    #  IBM  [1 ....... [4 .......
    #  GM        [2 ............
    arrivals = [("a", (1, "IBM", 1)), ("a", (2, "GM", 2)), ("a", (4, "IBM", 3)), ("a", (3, "IBM", 9))]
    assert evaluate(bind("SELECT * FROM now", catalog()), arrivals) == pk.tdb(
        [
            pk.Insert((1, "IBM", 1), 1, 4),
            pk.Insert((2, "GM", 2), 2, END_OF_TIME),
            pk.Insert((4, "IBM", 3), 4, END_OF_TIME),
        ]
    )


def test_an_update_that_the_filter_rejects_ends_the_life_of_the_one_before() -> None:
    #  price > 5:   [1 .......|4        nothing of IBM holds from 4 on
    arrivals = [("a", (1, "IBM", 10)), ("a", (4, "IBM", 3))]
    found = evaluate(bind("SELECT * FROM now WHERE price > 5", catalog()), arrivals)
    assert found == pk.tdb([pk.Insert((1, "IBM", 10), 1, 4)])


def test_of_two_updates_of_one_time_the_later_arrival_is_the_one_that_lives() -> None:
    arrivals = [("a", (1, "IBM", 10)), ("a", (1, "IBM", 3))]
    found = evaluate(bind("SELECT * FROM now", catalog()), arrivals)
    assert found == pk.tdb([pk.Insert((1, "IBM", 3), 1, END_OF_TIME)])


def test_what_is_owed() -> None:
    came = [(1, "A", 1), (2, "A", 2), (2, "B", 3), (3, "A", 4), (1, "B", 9)]
    assert last_values(came, SCHEMA, ["symbol"]) == {("A",): (3, "A", 4), ("B",): (2, "B", 3)}
    assert owed(came, [(2, "B", 3), (3, "A", 4)], SCHEMA, ["symbol"]) is None
    assert owed(came, [(1, "A", 1), (3, "A", 4), (2, "B", 3)], SCHEMA, ["symbol"]) is None
    lost = owed(came, [(2, "A", 2), (2, "B", 3)], SCHEMA, ["symbol"])
    assert lost is not None
    assert "last value" in lost
    turned = owed(came, [(2, "A", 2), (1, "A", 1), (3, "A", 4), (2, "B", 3)], SCHEMA, ["symbol"])
    assert turned is not None
    assert "passed by" in turned
