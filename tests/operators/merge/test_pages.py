"""What is kept of a merge: the table of parts knows every attribute, and a page opens only into its like."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from penstock.errors import CheckpointError
from penstock.model.elements import Insert, linear
from penstock.model.likeness import Likeness
from penstock.model.plain import NotPlain, decode, encode
from penstock.model.properties import StreamProperties
from penstock.operators.merge.divergence import Watch
from penstock.operators.merge.index import Calendar, Days, Holds, Index
from penstock.operators.merge.pages import PARTS, flatten, unflatten
from penstock.operators.merge.parts import PlainPart
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4, Bag, EndBag

KEYED = StreamProperties(insert_only=False, key=frozenset({"p"}), lifetime=None)


def merged(**options: Any) -> Any:
    return pk.merge({"a": [], "b": []}, properties=KEYED, algorithm="R3", **options)


@pytest.mark.parametrize("part", PARTS, ids=lambda p: p.name)
def test_names_are_given_once_and_plain_parts_are_whole(part: Any) -> None:
    assert [p.name for p in PARTS].count(part.name) == 1
    assert [p.kind for p in PARTS].count(part.kind) == 1
    if isinstance(part, PlainPart):
        known = getattr(part.kind, "__slots__", None) or part.kind.__dataclass_fields__
        assert set(part.plain) == set(known)


def test_shapes_know_every_attribute() -> None:
    """Of a part that is written by code of its own, a new attribute must be thought of there."""
    assert set(Bag.__slots__) == {"payload", "vs", "due", "agreed", "first_seen", "out", "inputs"}
    assert set(EndBag.__slots__) == {"counts", "size"}
    assert set(Likeness.__slots__) == {"known"}
    assert vars(Index()).keys() == {"nodes", "due", "likeness"}
    assert vars(Calendar()).keys() == {"_days", "_times", "entries", "living"}
    assert vars(Days()).keys() == {"_days", "_times"}
    assert vars(Holds()).keys() == {"_held", "_starts"}
    kept = {"found", "count", "unchecked", "forgotten_to", "records", "_due"}
    assert vars(Watch()).keys() == kept | {"_likeness", "reaction", "patience", "limit"}


def test_an_attribute_that_the_table_does_not_know_is_told() -> None:
    merge = R3(["a", "b"], watch=Watch())
    merge.colour = "red"  # type: ignore[attr-defined]
    with pytest.raises(NotPlain, match="R3 with colour, which no page has a place for"):
        flatten(merge)


def test_parts_that_are_met_twice_are_one() -> None:
    merge = R3(["a", "b"], watch=Watch())
    merge.push("a", Insert(("x", 2.5), 1, 9))
    merge.push("b", linear("vs", 0))
    (again,) = unflatten(decode(encode(flatten(merge))), R3(["a", "b"], watch=Watch()))
    (node,) = again.index.nodes.values()
    assert list(again.index.due.waiting()) == [node]
    assert again.leader is again.inputs[again.leader.name]
    assert flatten(again) == flatten(merge)


def test_a_page_of_another_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="a page of R4 for R3"):
        unflatten(flatten(R4(["a"])), R3(["a"]))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"policy": "half frozen"}, "policy: was first seen, is half frozen"),
        ({"lag": 3}, "lag: was 0, is 3"),
        ({"on_divergence": "ignore"}, "alarm: was True, is False"),
    ],
)
def test_a_merge_with_other_options_does_not_take_a_snapshot(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(CheckpointError, match="The snapshot is of another merge") as caught:
        merged(**changed).restore(merged(policy="first seen").snapshot())
    assert f"got:   {said}\n" in str(caught.value)


def test_the_reaction_to_divergence_is_the_one_asked_for_now() -> None:
    later = merged(on_divergence="stop")
    later.restore(merged(on_divergence="report").snapshot())
    assert later.merge.watch.reaction == "stop"


def test_a_snapshot_of_a_query_is_no_merges() -> None:
    query: Any = pk.Flow().stream("s", [], time="ts", schema="ts bigint").query("SELECT ts FROM s")
    with pytest.raises(CheckpointError, match="it is of a query"):
        merged().restore(query.execution().snapshot())


def test_what_was_put_aside_and_what_waits_to_be_said_are_kept() -> None:
    merge = merged()
    merge.push("a", linear("vs", 10))
    merge.push("a", Insert(("x",), 1, 5))
    merge._pending += [Insert(("y",), 11, 12), linear("vs", 11)]
    later = merged()
    later.restore(merge.snapshot())
    assert len(later.missteps) == 1
    assert later.missteps == merge.missteps
    assert later._pending == merge._pending


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        [[0], [("R3", 1)], {}],
        [[0], [("R3", 1), ("colour", 1)], {"R3": [()]}],
        [[0], [("R3", 1)], {"R3": [(1,)]}],
    ],
)
def test_a_damaged_state_is_told(state: Any) -> None:
    from penstock.operators.state import open_snapshot, seal_snapshot

    saved = open_snapshot(merged().snapshot())
    with pytest.raises(CheckpointError, match="not what its operator writes"):
        merged().restore(seal_snapshot({**saved, "state": state}, ""))
    with pytest.raises(CheckpointError, match="newer release"):
        merged().restore(seal_snapshot({**saved, "version": 99}, ""))
