"""Nodes whose matter is how long events live: merging what replicas say of it, settling, reading and altering it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.model.cached import cached_property
from penstock.model.lived_rows import END, OLD
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, TIMESTAMP, Field, Schema
from penstock.model.time import Domain, show_span
from penstock.plan.integrity import check_count, check_lengths
from penstock.plan.node import Nary, SameColumns, Unary


@dataclass(frozen=True)
class Merge(Nary):
    """Logical merge: streams that are replicas of one, as one (LMerge)."""

    names: tuple[str, ...]
    algorithm: str
    policy: str = "half frozen"
    lag: int = 0
    driver: str = "leading"
    elements: bool = False
    """Whether rows have lives of their own, and may be revised, instead of being plain events."""
    why: str = ""
    """Why this algorithm is right, and no weaker one is known to be."""
    on_divergence: str = "report"
    """What is done when a replica differs: `report` (a dead letter), `stop` or `ignore`."""
    key: tuple[int, ...] | None = None
    """The places of the key's columns, where a key is known."""

    def __post_init__(self) -> None:
        """The branches agree, and each has a name."""
        super().__post_init__()
        check_count("Merge, names of replicas", self.branches, len(self.names))

    @property
    def takes_revisions(self) -> bool:
        """Telling what replicas come to is its work."""
        return True

    @cached_property
    def properties(self) -> StreamProperties:
        """What every replica promises; the output of an ordered merge is ordered, that of another is not."""
        first = self.branches[0].properties
        ordered = self.algorithm in ("R0", "R1", "R2")
        return replace(
            first,
            ordered=ordered,
            strictly_ordered=self.algorithm == "R0",
            deterministic_ties=self.algorithm in ("R0", "R1"),
            max_disorder=0 if ordered else None,
            insert_only=not self.elements or ordered or self.policy == "conservative",
        )

    @property
    def label(self) -> str:
        """The replicas and how they are merged."""
        how = self.algorithm if self.algorithm in ("R0", "R1", "R2") else f"{self.algorithm}, {self.policy}"
        lag = f", {self.lag} ticks behind" if self.lag else ""
        driver = f", bounds by {self.driver}" if self.driver != "leading" else ""
        return f"Merge {', '.join(self.names)} (LMerge {how}{driver}{lag})"


@dataclass(frozen=True)
class Settle(SameColumns):
    """Events once they can no longer change, in order of start (the papers' Cleanse)."""

    @property
    def takes_revisions(self) -> bool:
        """It keeps them to itself."""
        return True

    @cached_property
    def properties(self) -> StreamProperties:
        """Ordered inserts; those that start together come in the same order everywhere, unless they have floats.

        Groups of which something is promised alone are ahead of the others.
        """
        exact = not any(f.type.is_fractional for f in self.schema.fields)
        ordered = not self.speaks_of_groups
        return replace(
            self.input.properties,
            ordered=ordered,
            strictly_ordered=False,
            insert_only=True,
            deterministic_ties=exact and ordered,
            max_disorder=0 if ordered else None,
        )

    @property
    def label(self) -> str:
        """The operator's name in the papers."""
        return "Settle (Cleanse)"


@dataclass(frozen=True)
class Ends(Unary):
    """Events with their ends as a column, which expressions can read; only of events that have settled."""

    name: str

    @cached_property
    def schema(self) -> Schema:
        """The input's columns and the end, null where an event never ends."""
        below = self.input.schema
        end = Field(self.name, TIMESTAMP if below.domain is Domain.TIMESTAMP else BIGINT)
        return replace(below, fields=(*below.fields, end))

    @cached_property
    def properties(self) -> StreamProperties:
        """The input's."""
        return self.input.properties

    @property
    def label(self) -> str:
        """The column."""
        return f"Ends as {self.name}"


@dataclass(frozen=True)
class AlterLifetime(Unary):
    """Events with other lives (StreamInsight's AlterEventLifetime).

    An event moves by `shift`. It then lives for `duration` or, where that is not given, `extend` longer than it did and
    `at_most` so long. One that never ends goes on never ending unless it is given a length. An adjust of an end becomes
    the adjust of the altered end, or nothing where that stays; a removal stays one.
    """

    shift: int = 0
    duration: int | None = None
    extend: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        """Lengths make events, and something is altered."""
        check_lengths("AlterLifetime", self.duration, self.extend, self.at_most)

    @property
    def sets_ends(self) -> bool:
        """Whether events get other lengths, and are not only moved."""
        return self.duration is not None or self.extend != 0 or self.at_most is not None

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, with lives where events get other lengths; a time that is moved has 64 bits."""
        below = self.input.schema
        fields = below.fields
        if self.shift and below.domain is Domain.INTEGER:
            fields = tuple(replace(f, type=BIGINT) if f.name == below.time else f for f in fields)
        if not self.sets_ends:
            return replace(below, fields=fields)
        return replace(below, fields=fields, lifetime=1, lives=below.lives or (END, OLD))

    @property
    def takes_revisions(self) -> bool:
        """An insert and its adjusts are altered alike."""
        return True

    def length(self, length: int | None) -> int | None:
        """How long an event lives that lived so long; None is for ever, or so long that nobody knows."""
        if self.duration is not None:
            return self.duration
        longer = None if length is None else length + self.extend
        known = [each for each in (longer, self.at_most) if each is not None]
        return min(known, default=None)

    @cached_property
    def properties(self) -> StreamProperties:
        """Order, keys and ties stay: events that start together go on doing so."""
        below = self.input.properties
        plain = self.input.schema.lives is None
        return replace(below, lifetime=self.length(self.input.schema.lifetime if plain else below.lifetime))

    @property
    def label(self) -> str:
        """What is done to a life."""
        domain = self.input.schema.domain
        said = []
        if self.shift:
            sign = "-" if self.shift < 0 else ""
            said.append(f"shifted by {sign}{show_span(abs(self.shift), domain)}")
        if self.duration is not None:
            said.append(f"lives {show_span(self.duration, domain)}")
        if self.extend:
            said.append(f"lives {show_span(self.extend, domain)} longer")
        if self.at_most is not None:
            said.append(f"lives at most {show_span(self.at_most, domain)}")
        return f"AlterLifetime {', '.join(said) or 'as it is'}"
