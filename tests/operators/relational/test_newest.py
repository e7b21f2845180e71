"""What is newest of each key: by time, by ties, by who is believed, by who came later; and how long it lives."""

from __future__ import annotations

import math
from dataclasses import replace

from penstock.model.batch import Batch, Row, table_of
from penstock.model.elements import linear
from penstock.model.lived_rows import END, OLD
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.relational.newest import LEAST, NEWEST, NewestOperator
from penstock.operators.state import MemoryPages, seal, unseal

SCHEMA = schema_of([("ts", "bigint"), ("k", "double"), ("other", "bigint")], "ts")
LIVED = replace(SCHEMA, lives=(END, OLD))
A, B = 0, 1


def newest(ports: int = 2, *, ties: tuple[str, ...] = (), lives: bool = False) -> NewestOperator:
    return NewestOperator(LIVED if lives else SCHEMA, ports, [SCHEMA] * ports, ["k"], ties)


def passed(operator: NewestOperator, port: int, *rows: Row) -> list[Row]:
    return [
        row for out in operator.process(port, Batch(SCHEMA, list(rows))) if isinstance(out, Batch) for row in out.rows
    ]


def test_an_older_row_is_left_out_and_counted_whichever_stream_it_is_of() -> None:
    operator = newest()
    assert passed(operator, A, (5, 1.0, 1), (4, 1.0, 2), (4, 2.0, 3)) == [(5, 1.0, 1), (4, 2.0, 3)]
    assert passed(operator, B, (4, 1.0, 4)) == []
    assert operator.older == 2


def test_of_one_time_the_stream_that_is_named_first_is_believed_and_of_one_stream_the_later() -> None:
    operator = newest()
    assert passed(operator, B, (5, 1.0, 1)) == [(5, 1.0, 1)]
    assert passed(operator, A, (5, 1.0, 2)) == [(5, 1.0, 2)]
    assert passed(operator, B, (5, 1.0, 3)) == []
    assert passed(operator, A, (5, 1.0, 4)) == [(5, 1.0, 4)]


def test_ties_go_before_that_and_null_is_less_than_all_else() -> None:
    operator = newest(ties=("other",))
    assert passed(operator, B, (5, 1.0, None)) == [(5, 1.0, None)]
    assert passed(operator, A, (5, 1.0, -9)) == [(5, 1.0, -9)]
    assert passed(operator, A, (5, 1.0, None)) == []
    assert passed(operator, B, (5, 1.0, 3)) == [(5, 1.0, 3)]
    assert passed(operator, A, (5, 1.0, 2)) == []


def test_keys_are_equal_as_groups_are() -> None:
    operator = newest()
    assert passed(operator, A, (5, math.nan, 1), (4, math.nan, 2)) == [(5, math.nan, 1)] or operator.older == 1
    assert passed(operator, A, (5, 0.0, 1), (4, -0.0, 2)) == [(5, 0.0, 1)]
    assert passed(operator, A, (5, None, 1), (4, None, 2)) == [(5, None, 1)]
    assert operator.older == 3


def test_a_key_is_forgotten_once_nothing_as_old_can_come_and_not_while_its_end_is_to_be_told() -> None:
    """As many keys as are gone over, all at 5: promises of both inputs say when, and of the least of them."""
    for lives in (False, True):
        operator = newest(lives=lives)
        passed(operator, A, *[(5, float(key), 1) for key in range(LEAST)])
        for port, bound, left in ((A, 9, LEAST), (B, 5, LEAST), (B, 6, LEAST if lives else 0)):
            list(operator.punctuate(port, linear("ts", bound)))
            assert len(operator.pages.get(NEWEST) or {}) == left
            operator._forgets_at = 0
        passed(operator, A, (9, 1.0, 2), (11, 2.0, 2))
        assert passed(operator, B, (8, 1.0, 3)) == []
        list(operator.punctuate(B, linear("ts", 10)))  # the least is that of the other
        assert passed(operator, B, (10, 2.0, 3)) == []


def test_a_row_ends_the_life_of_the_one_before_it() -> None:
    operator = newest(1, lives=True)
    (first,) = operator.process(A, Batch(SCHEMA, [(1, 1.0, 1), (3, 1.0, 2)]))
    (second,) = operator.process(A, Batch(SCHEMA, table=table_of(SCHEMA, [(3, 1.0, 3)])))
    told = [(type(e).__name__, e.payload[2], e.ve) for out in (first, second) for e in out.elements()]  # type: ignore[union-attr]
    assert told == [
        ("Insert", 1, END_OF_TIME), ("Adjust", 1, 3), ("Insert", 2, END_OF_TIME),
        ("Adjust", 2, 3), ("Insert", 3, END_OF_TIME),  # of two that start together the first has not lived
    ]  # fmt: skip


def test_its_pages_go_through_bytes() -> None:
    operator, again = newest(1, lives=True), newest(1, lives=True)
    passed(operator, A, (5, math.nan, 1), (4, None, 2))
    passed(operator, A, (1, None, 2))
    pages = {key: seal(operator, key, operator.pages.get(key), "newest") for key in operator.pages.keys()}  # noqa: SIM118
    again.attach(MemoryPages({key: unseal(again, key, data, "newest") for key, data in pages.items()}))
    assert again.older == 1
    assert passed(again, A, (3, None, 9)) == []
    assert [row[2] for row in passed(again, A, (6, math.nan, 7))] == [1, 7]
