"""When the output of a merge is compatible with its inputs, straight from the conditions of section III.

A stream's prefix comes to a set of events and its last bound. An event is *unfrozen* while its start is not below the
bound, *half frozen* when its start is, and *fully frozen* when its end is. The output is compatible when, however the
inputs go on, it can still become equivalent to them. Where payload and start are a key these are C1 to C3 (with
L <= L_m for a half-frozen event: an output may lag); without a key they are counted per payload and start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.model.elements import Element, Payload, Punctuation
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME, MIN_TICK

Group = tuple[Payload, int]


@dataclass(frozen=True)
class Prefix:
    """What a stream has come to: its events and its last bound."""

    events: TDB
    bound: int

    def is_half_frozen(self, vs: int, ve: int) -> bool:
        """The start is below the bound, the end is not."""
        return vs < self.bound and not self.is_fully_frozen(ve)

    def is_fully_frozen(self, ve: int) -> bool:
        """The end is below the bound; the end of time freezes all."""
        return ve < self.bound or self.bound == END_OF_TIME

    def ends(self) -> dict[Group, Counter[int]]:
        """The ends per payload and start."""
        grouped: dict[Group, Counter[int]] = defaultdict(Counter)
        for (payload, vs, ve), count in self.events.items():
            grouped[payload, vs][ve] += count
        return grouped


def prefix(elements: Iterable[Element]) -> Prefix:
    """The state of a stream after some elements."""
    given = list(elements)
    bounds = [e.value for e in given if isinstance(e, Punctuation) and e.is_linear]
    return Prefix(tdb(given), max(bounds, default=MIN_TICK))


def incompatibilities(inputs: Sequence[Prefix], output: Prefix) -> list[str]:
    """Why an output is not compatible with inputs in which payload and start are a key; empty if it is."""
    found = [_c1(inputs, output)]
    groups = {group for p in (*inputs, output) for group in p.ends()}
    tables = [p.ends() for p in inputs]
    shown = output.ends()
    for payload, vs in sorted(groups, key=repr):
        said = [(p, next(iter(t[payload, vs]))) for p, t in zip(inputs, tables, strict=True) if t.get((payload, vs))]
        ours = list(shown.get((payload, vs), Counter()).elements())
        reasons = (_c2(said, ours, vs, output), _c3(said, ours, vs, output))
        found += [f"{why}: {payload!r} at {vs}" for why in reasons if why]
    return [why for why in found if why]


def _c1(inputs: Sequence[Prefix], output: Prefix) -> str:
    furthest = max((p.bound for p in inputs), default=MIN_TICK)
    return f"C1: the output is at {output.bound}, no input is beyond {furthest}" if output.bound > furthest else ""


def _c2(said: list[tuple[Prefix, int]], ours: list[int], vs: int, output: Prefix) -> str:
    """What may be in the output."""
    if not ours:
        return ""
    if len(ours) > 1:
        return "C2: the event is there more than once"
    (end,) = ours
    if output.is_fully_frozen(end):
        same = any(p.is_fully_frozen(ve) and ve == end for p, ve in said)
        return "" if same else f"C2: it is frozen with end {end}, which is frozen in no input"
    if output.is_half_frozen(vs, end):
        follows = any(
            (p.is_half_frozen(vs, ve) and output.bound <= p.bound) or (p.is_fully_frozen(ve) and output.bound <= ve)
            for p, ve in said
        )
        return "" if follows else "C2: it is half frozen and can follow no input"
    return ""


def _c3(said: list[tuple[Prefix, int]], ours: list[int], vs: int, output: Prefix) -> str:
    """What must be in the output."""
    if output.bound <= vs:
        return ""  # anything can still be added
    half = any(output.is_half_frozen(vs, end) for end in ours)
    final = [ve for p, ve in said if p.is_fully_frozen(ve)]
    for ve in final:
        if output.is_fully_frozen(ve):
            if ve not in ours:
                return f"C3: it lacks the end {ve}, which is frozen in an input"
        elif not half:
            return f"C3: it cannot get the end {ve} any more, which is frozen in an input"
    frozen = [p.bound for p, ve in said if p.is_half_frozen(vs, ve)]
    if not final and frozen and not (output.bound <= max(frozen) and half):
        return "C3: it is half frozen in an input and cannot be followed"
    return ""


def incompatibilities_of_bags(inputs: Sequence[Prefix], output: Prefix) -> list[str]:
    """The same without a key, for an output whose bound is that of the input that is furthest ahead.

    The output has the fully frozen events of that input, and of each payload and start that is frozen at all as many
    events as it.
    """
    furthest = max(inputs, key=lambda p: p.bound)
    found = [_c1(inputs, output)]
    if output.bound < furthest.bound or output.bound == MIN_TICK:
        return [why for why in found if why]
    theirs, ours = furthest.ends(), output.ends()
    for payload, vs in sorted({*theirs, *ours}, key=repr):
        if vs >= output.bound:
            continue
        want, have = theirs.get((payload, vs), Counter()), ours.get((payload, vs), Counter())
        wanted, had = sum(want.values()), sum(have.values())
        if wanted != had:
            found.append(f"R4: {had} events where the input has {wanted}: {payload!r} at {vs}")
        final = [Counter({ve: n for ve, n in ends.items() if output.is_fully_frozen(ve)}) for ends in (want, have)]
        if final[0] != final[1]:
            found.append(f"R4: other frozen ends than the input: {payload!r} at {vs}")
    return [why for why in found if why]
