"""Streams of other forms that make no sense: put aside with the reason, or refused, in words of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as pk
from penstock.errors import CheckpointError, ElementError, MergeError
from penstock.model.elements import Element, Insert, linear
from penstock.model.form_reading import OpenCloseReader, SignedReader
from penstock.model.form_writing import OpenCloseWriter, SignedWriter
from penstock.model.forms import Close, Formed, Open, Signed
from penstock.model.time import END_OF_TIME, MIN_TICK

A = ("A",)
END = linear("vs", END_OF_TIME)


@pytest.mark.parametrize(
    ("form", "elements", "reason"),
    [
        ("open/close", [Close(A, 4)], "needs an event that was opened"),
        ("open/close", [Open(A, 1), Open(A, 2)], "open already, since 1"),
        ("open/close", [Open(A, 3), Close(A, 2)], "needs an event that was opened"),
        ("open/close", [Open(A, 1), Close(A, 3), linear("vs", 5), Close(A, 6)], "not final"),
        ("open/close", [Open(A, 1), linear("vs", 5), Close(A, 4)], "a close at 4, below the input's own bound 5"),
        ("open/close", [linear("vs", 5), Open(A, 4)], "an open at 4, below the input's own bound 5"),
        ("open/close", [Open(A, 1), Close(A, 1), Close(A, 3)], "needs an event that was opened"),
        ("open/close", [Insert(A, 1, 2)], "not of the input's form, which is open/close"),
        ("signed", [Signed(A, 4, -1)], "needs a positive one"),
        ("signed", [Signed(A, 4, 1), Signed(A, 3, 1)], "after one of the same payload at 4"),
        ("signed", [linear("vs", 5), Signed(A, 4, 1)], "a tuple at 4, below the input's own bound 5"),
        ("signed", [Open(A, 1)], "not of the input's form, which is signed"),
        (None, [Open(A, 1), Signed(A, 1, 1)], "not of the input's form, which is open/close"),
        (None, [Open(([],), 1)], "a payload that cannot be compared"),
        (None, [Open(A, MIN_TICK - 1)], "beyond the ends of time"),
    ],
)
def test_what_an_input_contradicts_is_put_aside(form: str | None, elements: list[Formed], reason: str) -> None:
    merge = pk.merge({"a": [*elements, END]}, form=form)
    list(merge)
    (misstep,) = merge.missteps
    assert reason in misstep.reason
    assert misstep.element == elements[-1]
    restored = pk.merge({"a": []}, form=form)
    restored.restore(merge.snapshot())
    assert restored.missteps == [misstep]


def test_a_second_close_where_there_is_one() -> None:
    merge = pk.merge({"a": [Open(A, 1), Close(A, 4), Close(A, 5), END]}, form="open/close", single_close=True)
    assert list(merge) == [Open(A, 1), Close(A, 4), END]
    assert "a second close" in merge.missteps[0].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "closed"}, "no such form"),
        ({"form": {"input_1": "opened"}}, "no such form"),
        ({"gives": 5}, "no such form"),
        ({"single_close": True}, "Only opens have closes"),
        ({"single_close": "yes", "form": "open/close"}, "true or false"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        pk.merge([[END]], **options)


def test_an_event_beside_one_that_never_ends_cannot_be_said() -> None:
    elements: list[Element] = [Insert(A, 1, END_OF_TIME), Insert(A, 5, 8), END]
    with pytest.raises(MergeError, match="beside one of its payload that never ends") as error:
        list(pk.merge([elements], gives="open/close"))
    assert error.value.hint == 'have the stream given as "elements"'


def test_a_snapshot_is_of_a_merge_that_gives_the_same_form() -> None:
    merge = pk.merge({"a": []}, form="open/close")
    merge.push("a", Open(A, 1))
    for other in ({"form": "signed"}, {"form": "open/close", "single_close": True, "policy": "first seen"}):
        with pytest.raises(CheckpointError, match="another merge"):
            pk.merge({"a": []}, algorithm="R4", **other).restore(merge.snapshot())
    with pytest.raises(CheckpointError, match="gives open/close"):
        pk.merge({"a": []}, properties=merge.properties).restore(merge.snapshot())


WRONG: list[Callable[[], object]] = [
    lambda: Signed(A, 1, 0),
    lambda: Open(A, END_OF_TIME),
    lambda: Signed(A, END_OF_TIME, 1),
    lambda: Open("A", 1),  # type: ignore[arg-type]
    lambda: Close(A, 1.5),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("wrong", WRONG)
def test_elements_check_themselves(wrong: Callable[[], object]) -> None:
    with pytest.raises(ElementError):
        wrong()


@pytest.mark.parametrize("kind", [OpenCloseReader, SignedReader, OpenCloseWriter, SignedWriter])
def test_readers_and_writers_start_empty(kind: Any) -> None:
    made = kind()
    assert made.size == 0
    other = kind()
    other.from_plain(made.to_plain())
    assert other.to_plain() == made.to_plain()
