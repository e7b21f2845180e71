"""Who drives a merge by hand, and inputs that are away."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from penstock.errors import MergeError
from penstock.model.elements import Insert
from penstock.model.properties import StreamProperties
from tests.flow.test_merge import KEYED, ONE, TWO, P, stable


def test_a_driver_that_is_away_drives_when_it_comes_back() -> None:
    merge = pk.merge({"a": [], "b": []}, properties=KEYED)
    merge.detach("a")
    merge.follow("a")
    assert merge.push("b", stable(3)) == [stable(3)]  # b stands in
    merge.attach("a")
    assert merge.push("b", stable(7)) == []
    assert merge.push("a", stable(5)) == [stable(5)]


@pytest.mark.parametrize("away", ["a", 5, [5], None])
def test_inputs_that_are_away_are_a_list_of_names(away: Any) -> None:
    with pytest.raises(MergeError, match="Inputs that are away are a list of names"):
        pk.merge([ONE, TWO], away=away)


def test_another_input_may_drive_from_now_on() -> None:
    merge = pk.merge({"a": [], "b": []}, properties=KEYED, driver="b")
    merge.push("a", Insert(P, 1, 9))
    assert merge.push("a", stable(20)) == []
    assert merge.follow("leading") == [stable(20)]
    with pytest.raises(MergeError, match="no such driver"):
        merge.follow("c")
    ordered = pk.merge({"a": [], "b": []}, properties=StreamProperties(ordered=True, strictly_ordered=True))
    with pytest.raises(MergeError, match="R0 follows whoever is furthest ahead"):
        ordered.follow("b")
