"""R4 repairs its output with the fewest adjusts: found by trying every sequence of moves, shortest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Adjust, Insert, linear
from penstock.operators.merge.r4 import R4

P = ("p",)
VS = 0
BOUND = 5

ends = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def agrees(out: Counter[int], said: Counter[int]) -> bool:
    """As many events, and the same ends wherever one is fully frozen."""

    def final(c: Counter[int]) -> Counter[int]:
        return Counter({e: n for e, n in c.items() if e < BOUND})

    return sum(out.values()) == sum(said.values()) and final(out) == final(said)


def moves(out: Counter[int], said: Counter[int]) -> Iterator[Counter[int]]:
    """Every output that one element more can make: a new end for an event, a removal, an insert."""
    for old in out:
        rest = out - Counter([old])
        yield rest
        yield from (rest + Counter([new]) for new in range(1, 10) if new != old)
    yield from (out + Counter([new]) for new in said)


def fewest(out: Counter[int], said: Counter[int]) -> int:
    """The length of the shortest repair, breadth first."""
    layer, count = {tuple(sorted(out.elements()))}, 0
    while not any(agrees(Counter(state), said) for state in layer):
        layer = {tuple(sorted(after.elements())) for state in layer for after in moves(Counter(state), said)}
        count += 1
    return count


@given(shown=ends, said=ends)
def test_no_repair_is_shorter(shown: list[int], said: list[int]) -> None:
    """One input brings what is put out first; another one, with other ends, drives the bound."""
    merge = R4(["first", "driver"])
    output = [e for end in shown for e in merge.push("first", Insert(P, VS, end))]
    out = Counter(e.ve for e in output if isinstance(e, Insert))
    for end in said:
        for element in merge.push("driver", Insert(P, VS, end)):
            assert isinstance(element, Insert)  # the driver has more events than were put out
            out[element.ve] += 1
    repair = [e for e in merge.push("driver", linear("vs", BOUND)) if isinstance(e, Insert | Adjust)]
    assert len(repair) == fewest(out, Counter(said))
