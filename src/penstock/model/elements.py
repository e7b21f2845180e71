"""The elements of a stream: insert, adjust and punctuation.

An event is a payload that is valid during `[vs, ve)`. `Insert` brings it, `Adjust` moves its end from `v_old` to `ve`
(`ve == vs` removes it). A punctuation says what can no longer come: *no later element is below every bound while
matching every constant*. With one bound it is linear (the `stable()` of LMerge), with constants group-wise, with two
bounds the joint punctuation of a join. The bound itself is still allowed: a bound of 60 closes the window that ends at
60.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import ElementError
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical

Payload = tuple[object, ...]


def is_whole(value: object) -> bool:
    """Whether a value counts as an integer, as those of numpy do and truth values do not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_kinds(payload: object, *ticks: object) -> None:
    """Refuse what is no event; whatever counts as an integer is a tick."""
    for tick in ticks:
        if not is_whole(tick):
            raise ElementError("The start and the end of an event are integers.", got=repr(tick)[:200], hint="ticks")
    if not isinstance(payload, tuple):
        raise ElementError("A payload is a tuple of values.", got=repr(payload)[:200], hint="('a', 5)")


def _check_bound(name: object, bound: object) -> None:
    if not isinstance(name, str):
        raise ElementError("A punctuation names an attribute.", got=repr(name)[:200], hint="linear('ts', 60)")
    if not is_whole(bound):
        raise ElementError("A bound is an integer.", got=repr(bound)[:200], hint="ticks, or END_OF_TIME")
    if not MIN_TICK <= bound <= END_OF_TIME:  # type: ignore[operator]
        raise ElementError("A bound beyond the end of time.", got=repr(bound)[:200], hint="END_OF_TIME is the last")


@dataclass(frozen=True, slots=True)
class Insert:
    """An event: `payload` is valid during `[vs, ve)`."""

    payload: Payload
    vs: int
    ve: int

    def __post_init__(self) -> None:
        """A lifetime holds at least one tick."""
        vs, ve = self.vs, self.ve
        if type(vs) is not int or type(ve) is not int or type(self.payload) is not tuple:
            check_kinds(self.payload, vs, ve)
        if ve <= vs:
            raise ElementError(
                "An event must live at least one tick.",
                got=f"[{self.vs}, {self.ve})",
                hint="ve must be greater than vs",
            )


@dataclass(frozen=True, slots=True)
class Adjust:
    """The end of an event moves from `v_old` to `ve`; `ve == vs` removes the event."""

    payload: Payload
    vs: int
    v_old: int
    ve: int

    def __post_init__(self) -> None:
        """An event cannot end before it starts."""
        if type(self.vs) is not int or type(self.ve) is not int or type(self.v_old) is not int:
            check_kinds(self.payload, self.vs, self.ve, self.v_old)
        if type(self.payload) is not tuple:
            check_kinds(self.payload)
        if self.ve < self.vs or self.v_old <= self.vs:
            raise ElementError(
                "An adjust must name a living event and must not end it before its start.",
                got=f"vs {self.vs}, old end {self.v_old}, new end {self.ve}",
                hint="ve == vs removes an event",
            )

    @property
    def lateness_time(self) -> int:
        """What a bound is compared with: moving the end of a half-frozen event is legal."""
        return min(self.v_old, self.ve)


@dataclass(frozen=True, slots=True)
class Punctuation:
    """No later element is below every bound while matching every constant."""

    bounds: tuple[tuple[str, int], ...]
    constants: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        """A punctuation that bounds nothing would say that nothing more comes."""
        if not self.bounds:
            raise ElementError(
                "A punctuation needs at least one bound.", hint="use END_OF_TIME as bound to end a stream"
            )
        try:
            for name, bound in self.bounds:
                if type(bound) is not int or type(name) is not str or not MIN_TICK <= bound <= END_OF_TIME:
                    _check_bound(name, bound)
            for name, _ in self.constants:
                if type(name) is not str:
                    _check_bound(name, 0)
        except (TypeError, ValueError):
            raise ElementError(
                "Bounds and constants are pairs of a name and a value.",
                got=f"{self.bounds!r}, {self.constants!r}"[:200],
                hint="linear('ts', 60), groupwise('ts', 60, router='a') or joint(a=60, b=70)",
            ) from None

    @property
    def is_linear(self) -> bool:
        """One bound and no constants."""
        return len(self.bounds) == 1 and not self.constants

    @property
    def is_joint(self) -> bool:
        """More than one bound."""
        return len(self.bounds) > 1

    @property
    def value(self) -> int:
        """The bound of a punctuation that has one."""
        if len(self.bounds) != 1:
            raise ElementError("A joint punctuation has no single bound.", got=str(self))
        return self.bounds[0][1]

    @property
    def attribute(self) -> str:
        """The attribute of a punctuation that bounds one."""
        if len(self.bounds) != 1:
            raise ElementError("A joint punctuation has no single attribute.", got=str(self))
        return self.bounds[0][0]

    @property
    def is_end(self) -> bool:
        """Whether it ends the stream."""
        return not self.constants and all(value == END_OF_TIME for _, value in self.bounds)

    def condemns(self, values: Mapping[str, object]) -> bool:
        """Whether an element with these attribute values contradicts this punctuation."""
        for name, constant in self.constants:
            if canonical(values[name]) != canonical(constant):
                return False
        for name, bound in self.bounds:
            value = values[name]
            if not isinstance(value, int) or (value >= bound and bound != END_OF_TIME):
                return False
        return True

    def implies(self, other: Punctuation) -> bool:
        """Whether everything that `other` rules out is ruled out by this one."""
        mine, theirs = dict(self.bounds), dict(other.bounds)
        constants = {name: canonical(value) for name, value in other.constants}
        if any(name not in constants or constants[name] != canonical(value) for name, value in self.constants):
            return False
        return all(name in theirs and theirs[name] <= bound for name, bound in mine.items())

    def __str__(self) -> str:
        """Such as `ts >= 60, router = 'a'`."""
        bounds = " or ".join(f"{n} >= {'end' if v == END_OF_TIME else v}" for n, v in self.bounds)
        return f"punctuation({', '.join([bounds, *(f'{n} = {v!r}' for n, v in self.constants)])})"


Element = Insert | Adjust | Punctuation


def linear(attribute: str, bound: int) -> Punctuation:
    """The punctuation with one bound."""
    return Punctuation(((attribute, bound),))


def groupwise(attribute: str, bound: int, **constants: object) -> Punctuation:
    """A bound that holds for the elements with these constants only."""
    return Punctuation(((attribute, bound),), tuple(sorted(constants.items())))


def joint(**bounds: int) -> Punctuation:
    """Bounds on several attributes: an element is ruled out when it is below all of them."""
    return Punctuation(tuple(sorted(bounds.items())))


def last_bound(said: Sequence[Punctuation], attribute: str | None) -> int | None:
    """The last linear bound on an attribute among what is said one after the other; None if there is none."""
    for punctuation in reversed(said):
        if punctuation.is_linear and punctuation.attribute == attribute:
            return punctuation.value
    return None
