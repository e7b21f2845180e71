"""Keys as numbers against a dictionary: rows alone and batches in any order, taken up from state in between."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Batch, table_of
from penstock.model.plain import decode, encode
from penstock.model.schema import schema_of
from penstock.model.values import canonical_row
from penstock.operators.queues.key_table import KeyTable

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-2, 2) | st.integers(-90, 90),
    "boolean": st.booleans(),
    "double": st.sampled_from([0.0, -0.0, 1.0, -1.0, float("nan")]),
    "date": st.sampled_from([datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(1970, 1, 2)]),
    "timestamp": st.integers(-2, 2),
    "string": st.sampled_from(["", "a", "b"]),
    "decimal(20,2)": st.sampled_from([Decimal("0.00"), Decimal("-1.00")]),
    "array<double>": st.sampled_from([(), (0.0,), (-0.0,), (float("nan"),), (None,)]),
}
KEYS = [(), *[(name,) for name in VALUES], ("bigint", "boolean"), ("boolean", "boolean"), ("string", "double", "date")]


@pytest.mark.parametrize("types", KEYS, ids=str)
@given(data=st.data())
def test_a_key_keeps_the_number_of_its_first_coming(types: tuple[str, ...], data: st.DataObject) -> None:
    schema = schema_of([(f"c{at}", type_) for at, type_ in enumerate(types)] + [("v", "bigint")])
    row = st.tuples(*[st.none() | VALUES[type_] for type_ in types], st.just(0))
    table = KeyTable(schema, schema.names[:-1])
    known: dict[Any, int] = {}
    for how, rows in data.draw(
        st.lists(st.tuples(st.sampled_from(["alone", "batch", "state"]), st.lists(row, max_size=80)), max_size=5)
    ):
        keys = [canonical_row(each[:-1]) for each in rows]
        if how == "batch" and rows:  # those that are new have the next numbers, in whatever order
            found = table.numbers(Batch(schema, table=table_of(schema, rows))).tolist()
            new = {key: number for key, number in zip(keys, found, strict=True) if key not in known}
            assert sorted(new.values()) == list(range(len(known), len(known) + len(new)))
            known |= new
        else:
            found = [table.number(each) for each in rows]
            for key in keys:
                known.setdefault(key, len(known))
        assert found == [known[key] for key in keys]
        if how == "state":
            plain = decode(encode(table.to_plain()))
            table = KeyTable(schema, schema.names[:-1])
            table.from_plain(plain)
        assert [table.find(key) for key in known] == list(known.values())
    assert {canonical_row(key): at for at, key in enumerate(table.keys())} == known
