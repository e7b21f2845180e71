"""Codes of groups against a dictionary: any types and nulls, any batches, texts that have the same hash."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import table_of
from penstock.model.elements import Punctuation
from penstock.model.plain import decode, encode
from penstock.model.schema import Schema, schema_of
from penstock.operators.aggregates import group_codes, side_by_side, text_codes, word_table
from penstock.operators.aggregates.chosen import Chosen
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.aggregates.growing import Growing
from penstock.operators.aggregates.word_table import UNKNOWN, WordTable

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]) | st.integers(-50, 50),
    "string": st.sampled_from(["", "a", "b", "12345678", "123456789", "日本", "x" * 600, "x" * 601])
    | st.text(max_size=9),
    "binary": st.binary(max_size=9),
    "boolean": st.booleans(),
    "timestamp": st.integers(-(10**15), 10**15),
    "decimal(20,2)": st.sampled_from([Decimal("1.00"), Decimal("-1.00"), Decimal("0.01")]),
}
SCHEMAS = [(), ("bigint",), ("string",), ("binary",), ("string", "bigint"), ("timestamp", "decimal(20,2)", "boolean")]


def schema_with(types: tuple[str, ...]) -> Schema:
    return schema_of([(f"c{at}", type_) for at, type_ in enumerate(types)])


def batches(types: tuple[str, ...]) -> st.SearchStrategy[list[list[Any]]]:
    row = st.tuples(*[st.none() | VALUES[type_] for type_ in types])
    return st.lists(st.lists(row, min_size=1, max_size=30), min_size=1, max_size=4)


def same_hash(hash_: int) -> Any:
    return lambda ends, data: np.full(len(ends) - 1, hash_, np.uint64)


@pytest.mark.parametrize("types", SCHEMAS, ids=str)
@given(data=st.data())
def test_codes_are_the_same_in_every_process(types: tuple[str, ...], data: st.DataObject) -> None:
    """Hashes differ from process to process, and codes are in state that any of them may go on with."""
    schema, given_rows = schema_with(types), data.draw(batches(types))
    found = []
    for seed in (1, 2):
        with (
            mock.patch.object(word_table, "SEED", np.uint64(seed)),
            mock.patch.object(text_codes, "SEED", np.uint64(seed)),
        ):
            codes = GroupCodes(schema)
            columns = [table_of(schema, rows).columns if types else [] for rows in given_rows]
            found.append([codes.encode(c, len(r)).tolist() for c, r in zip(columns, given_rows, strict=True)])
    assert found[0] == found[1]


@pytest.mark.parametrize("large", [1, 1000], ids=["in halves", "whole"])
@given(given_rows=st.lists(st.lists(st.integers(-300, 300), min_size=1, max_size=400), min_size=1, max_size=3))
def test_codes_are_in_the_order_of_first_coming(large: int, given_rows: list[list[int]]) -> None:
    table, known = WordTable(1), dict[int, int]()
    for rows in given_rows:
        for row in rows:
            known.setdefault(row, len(known))
        with mock.patch.object(side_by_side, "LARGE", large):
            assert table.encode([np.array(rows)]).tolist() == [known[row] for row in rows]
    assert table.encode([np.array([*known, 1000])], adds=False).tolist() == [*known.values(), UNKNOWN]
    assert table.words[0].values.tolist() == list(known)


@pytest.mark.parametrize("collide", [None, 0, 7])
@pytest.mark.parametrize("types", SCHEMAS, ids=str)
@given(data=st.data())
def test_two_rows_have_the_same_code_exactly_if_they_are_the_same(
    types: tuple[str, ...], collide: int | None, data: st.DataObject
) -> None:
    """Also if all texts have one hash, which may be that of null."""
    schema, codes, known = schema_with(types), GroupCodes(schema_with(types)), {}
    with mock.patch.object(text_codes, "hashed", text_codes.hashed if collide is None else same_hash(collide)):
        for rows in data.draw(batches(types)):
            columns = table_of(schema, rows).columns if types else []
            for row, code in zip(rows, codes.encode(columns, len(rows)).tolist(), strict=True):
                assert known.setdefault(row, code) == code
        assert sorted(known.values()) == list(range(len(codes)))
        assert {key: code for code, key in enumerate(codes.keys)} == known
        assert codes.find(list(known)).tolist() == list(known.values())
        kept = codes.keep(np.arange(0, len(codes), 2))
        assert kept.keys == codes.keys[::2]
        assert codes.find(kept.keys).tolist() == list(range(0, len(codes), 2))
        again = GroupCodes.from_plain(schema, decode(encode(codes.to_plain())))
        assert again.keys == codes.keys == GroupCodes.from_plain(schema, codes.keys).keys


def test_what_is_not_there_is_not_found() -> None:
    codes = GroupCodes(schema_with(("string", "bigint")), [("a", 1), ("a", None), (None, 1), ("b", 2)])
    assert codes.find([("c", 1), ("a", 2), (None, None), ("a", "no number"), (None, 1)]).tolist() == [-1, -1, -1, -1, 2]
    assert len(codes) == 4


@pytest.mark.parametrize(
    ("constants", "meant"),
    [
        ({"c0": "a"}, [0, 1]),
        ({"c1": 1}, [0, 2]),
        ({"c1": None}, [1]),
        ({"c0": None}, [2]),
        ({"c0": "b", "c1": 2}, [3]),
        ({"c0": "z"}, []),
        ({"c1": "no number"}, []),
    ],
)
def test_the_groups_of_a_promise_are_found_by_their_constants(constants: dict[str, Any], meant: list[int]) -> None:
    codes = GroupCodes(schema_with(("string", "bigint")), [("a", 1), ("a", None), (None, 1), ("b", 2)])
    chosen = Chosen.by(Punctuation((("t", 5),), tuple(constants.items())), "t", ["c0", "c1"])
    assert chosen is not None
    assert codes.chosen(chosen).tolist() == meant


def test_many_groups_are_told_apart_as_the_table_grows() -> None:
    table = WordTable(1)
    for start in range(0, 40_000, 7_000):
        words = np.arange(start, start + 10_000) * 1024
        found = table.encode([words])
        assert np.array_equal(table.words[0].values[found], words)
    assert len(table) == 45_000
    assert (table.encode([np.arange(5) * 1024 + 1], adds=False) == UNKNOWN).all()


WORDS = st.integers(0, 3) | st.sampled_from([-(2**63), 2**63 - 1])


@given(
    st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(st.tuples(*[WORDS] * width), min_size=1, max_size=90)))
)
def test_rows_that_are_close_together_have_the_codes_that_they_have_among_others(batches: list[Any]) -> None:
    for rows in batches:
        table = WordTable(len(rows[0]))
        words = [np.array(word) for word in zip(*rows, strict=True)]
        codes = table.encode_close(words)
        assert len(set(zip(rows, codes.tolist(), strict=True))) == len(set(rows)) == len(table)
        assert table.encode(words, adds=False).tolist() == codes.tolist()


@given(st.lists(st.tuples(st.booleans(), st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=70)), max_size=4))
def test_rows_have_the_same_code_by_themselves_and_together(parts: list[tuple[bool, list[tuple[int, int]]]]) -> None:
    table = WordTable(2)
    known: dict[tuple[int, int], int] = {}
    for by_itself, rows in parts:
        words = [np.array(word) for word in zip(*rows, strict=True)]
        found = [table.encode_one(row) for row in rows] if by_itself else table.encode(words).tolist()
        for row, code in zip(rows, found, strict=True):
            assert known.setdefault(row, code) == code
    assert sorted(known.values()) == list(range(len(table)))


@given(
    st.sampled_from(["a", "日本", ""]),
    st.integers(0, 200),
    st.lists(st.tuples(st.integers(0, 199), st.none() | st.text())),
)
def test_texts_that_are_nearly_all_the_same(usual: str, start: int, others: list[tuple[int, str | None]]) -> None:
    texts: list[str | None] = ["before", *[usual] * 200]
    for at, text in others:
        texts[at] = text
    column = pa.chunked_array([pa.array(texts, pa.string())[start:]])
    codes = GroupCodes(schema_with(("string",)))
    with mock.patch.object(group_codes, "MANY_ROWS", 20), mock.patch.object(side_by_side, "LARGE", 20):
        found = codes.encode([column], len(column)).tolist()
    assert [codes.keys[code] for code in found] == [(text,) for text in texts[start:]]


@pytest.mark.parametrize("collide", [False, True])
@given(parts=st.lists(st.lists(st.none() | VALUES["string"], min_size=1, max_size=40), min_size=1, max_size=3))
def test_texts_that_are_nearly_all_different_have_the_codes_that_they_have_among_others(
    collide: bool, parts: list[list[str | None]]
) -> None:
    hashes = same_hash(7) if collide else text_codes.hashed
    found = []
    for differs in (False, True):
        codes = GroupCodes(schema_with(("string",)))
        with (
            mock.patch.object(text_codes, "hashed", hashes),
            mock.patch.object(group_codes, "_are_different", lambda values, said=differs: said),
            mock.patch.object(side_by_side, "LARGE", 8),
        ):
            found.append([codes.encode([pa.array(part, pa.string())], len(part)).tolist() for part in parts])
        assert [[codes.keys[code] for code in own] for own in found[-1]] == [[(t,) for t in part] for part in parts]
    assert found[0] == found[1]


@pytest.mark.parametrize(("keys", "different"), [(10, False), (4000, False), (10**6, True)])
def test_of_many_texts_it_is_seen_whether_they_are_different(keys: int, different: bool) -> None:
    column = pa.array(np.random.default_rng(1).integers(0, keys, 65_536)).cast(pa.string())
    assert group_codes._are_different(column) is different
    assert not group_codes._are_different(column[:100])


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), max_size=8))
def test_an_array_that_is_cut_keeps_its_first_numbers_and_no_more_room(
    steps: list[tuple[int, float]],
) -> None:
    grown, expected = Growing(np.int64), list[int]()
    for more, share in steps:
        expected += range(more)
        grown.append(np.arange(more))
        del expected[int(len(expected) * share) :]
        grown.cut(len(expected))
        assert grown.values.tolist() == expected
        assert len(grown.values.base) <= max(len(expected) * 5 // 4, 16)
