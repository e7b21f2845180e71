"""Properties that are computed once, and do not wait for each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from penstock.model.cached import cached_property


def test_it_is_computed_once_for_each_object() -> None:
    calls: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        @cached_property
        def length(self) -> int:
            """How long the name is."""
            calls.append(self.name)
            return len(self.name)

    one, other = Named("one"), Named("other")
    assert [one.length, one.length, other.length, one.length] == [3, 3, 5, 3]
    assert calls == ["one", "other"]
    assert Named.length.__doc__ == "How long the name is."


def test_two_threads_compute_it_at_the_same_time() -> None:
    """Each waits for the other within the property, as two that plan queries may: with a lock neither would come."""
    both = Barrier(2, timeout=5)

    class Meeting:
        @cached_property
        def place(self) -> int:
            return both.wait()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda each: each.place, [Meeting(), Meeting()])) == [0, 1]
