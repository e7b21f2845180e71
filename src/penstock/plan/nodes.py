"""The logical plan: frozen nodes, each of which derives its schema and properties from its inputs.

A node says what is computed, never how. A node that does not fit its inputs cannot be made (`integrity`). What all
have is in `node`, aggregation in `aggregate_nodes`; whoever uses nodes finds all of them here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from penstock.model.progress import Progress, Punctuated
from penstock.model.properties import StreamProperties
from penstock.model.schema import BIGINT, TIMESTAMP, Field, Schema
from penstock.model.time import Domain, show_span
from penstock.plan.aggregate_nodes import WINDOW_FIELDS, GroupAggregate, WindowAggregate, window_fields
from penstock.plan.expressions import Column, Expression, columns_in
from penstock.plan.integrity import check_agree, check_column, check_count, check_predicate, check_reads
from penstock.plan.node import Node, Unary

__all__ = [
    "ROW_NUMBER", "WINDOW_FIELDS", "Distinct", "Ends", "GroupAggregate", "Merge", "Nary", "Node", "NumberRows",
    "Project", "Select", "Settle", "Source", "Unary", "Union", "WindowAggregate", "window_fields",
]  # fmt: skip

ROW_NUMBER = "row_num"


@dataclass(frozen=True)
class Source(Node):
    """A named stream with its declared time and progress."""

    name: str
    fields: Schema
    progress: Progress
    declared: StreamProperties
    max_ahead: int | None = None
    """A row further than so many ticks beyond what the stream has reached is a dead letter."""
    by_arrival: bool = False
    """Whether rows are only numbered as they arrive: then nothing is late, and nothing follows from their time."""
    punctuation: Expression | None = None
    """What tells punctuation from data, where rows of the stream are punctuation: the condition of its progress."""

    @cached_property
    def schema(self) -> Schema:
        """As declared."""
        return self.fields

    @cached_property
    def properties(self) -> StreamProperties:
        """As declared."""
        return self.declared

    @cached_property
    def silent(self) -> tuple[int, ...]:
        """The columns that must be null in punctuation: all but the time and those that tell it from data."""
        if self.punctuation is None or (isinstance(self.progress, Punctuated) and self.progress.whole_stream):
            return ()
        per = [self.schema.fields[i].name for i in self.per]
        speaking = {self.schema.time, *columns_in(self.punctuation), *per}
        return tuple(i for i, field in enumerate(self.schema.fields) if field.name not in speaking)

    @cached_property
    def per(self) -> tuple[int, ...]:
        """The columns whose values in punctuation say which rows it speaks for."""
        return tuple(map(self.schema.index, self.progress.per)) if isinstance(self.progress, Punctuated) else ()

    @property
    def speaks_of_groups(self) -> bool:
        """Whether its punctuation may be of some rows alone."""
        return bool(self.per) and not self.by_arrival

    @property
    def label(self) -> str:
        """Name, time and progress."""
        ahead = "" if self.max_ahead is None else f", at most {show_span(self.max_ahead, self.fields.domain)} ahead"
        arrival = ", by arrival" if self.by_arrival else ""
        return f"Source {self.name} (time {self.fields.time}, {self.progress}{ahead}{arrival})"


@dataclass(frozen=True)
class NumberRows(Unary):
    """Rows numbered from 0 as they arrive, late ones too; the number becomes their time unless they keep their own."""

    keeps_time: bool = False

    @cached_property
    def schema(self) -> Schema:
        """The input's columns and the row number."""
        below = self.input.schema
        fields = (*below.fields, Field(ROW_NUMBER, BIGINT))
        if self.keeps_time:
            return Schema(fields, below.time, below.lifetime, lives=below.lives)
        return Schema(fields, ROW_NUMBER)

    @property
    def speaks_of_groups(self) -> bool:
        """What is promised of times says nothing of row numbers."""
        return self.keeps_time and self.input.speaks_of_groups

    @cached_property
    def properties(self) -> StreamProperties:
        """Row numbers are strictly ordered."""
        if self.keeps_time:
            return self.input.properties
        return StreamProperties(ordered=True, strictly_ordered=True, key=frozenset({ROW_NUMBER}), max_disorder=0)


@dataclass(frozen=True)
class Select(Unary):
    """The rows for which the predicate is true."""

    predicate: Expression

    def __post_init__(self) -> None:
        """The predicate is a condition on columns of the input."""
        check_predicate("Select", self.predicate, self.input.schema)

    @cached_property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema

    @property
    def takes_revisions(self) -> bool:
        """An insert and its adjusts are the same row: all of them are kept, or none."""
        return True

    @cached_property
    def properties(self) -> StreamProperties:
        """Leaving rows out keeps every promise."""
        return self.input.properties

    @property
    def label(self) -> str:
        """The predicate."""
        return f"Select {self.predicate}"


@dataclass(frozen=True)
class Project(Unary):
    """New columns from expressions; the time column travels along, hidden if it was not asked for."""

    columns: tuple[tuple[str, Expression], ...]
    time: str
    hidden: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Expressions read columns of the input; time and hidden columns are among those that come out."""
        check_reads("Project", [e for _, e in self.columns], self.input.schema)
        for name in self.hidden:
            check_column("Project, hidden", name, None, self.schema)

    @cached_property
    def schema(self) -> Schema:
        """One column per expression."""
        fields = tuple(Field(name, e.type, hidden=name in self.hidden) for name, e in self.columns)
        below = self.input.schema
        return Schema(fields, self.time, below.lifetime, lives=below.lives if self.keeps_time else None)

    @property
    def keeps_time(self) -> bool:
        """Whether rows start where they did."""
        time = dict(self.columns).get(self.time)
        return isinstance(time, Column) and time.name == self.input.schema.time

    @property
    def takes_revisions(self) -> bool:
        """An insert and its adjusts become the same row, as long as its start stays."""
        return self.keeps_time

    @cached_property
    def properties(self) -> StreamProperties:
        """Order stays; a key stays if all of it is still there."""
        below = self.input.properties
        renamed = {e.name: name for name, e in self.columns if isinstance(e, Column) and name not in self.hidden}
        key = below.key
        kept = key is not None and key <= renamed.keys()
        return replace(below, key=frozenset(renamed[k] for k in key) if kept and key is not None else None)

    @property
    def label(self) -> str:
        """The visible columns."""
        shown = [name if str(e) == name else f"{e} AS {name}" for name, e in self.columns if name not in self.hidden]
        return f"Project {', '.join(shown)}"


@dataclass(frozen=True)
class Nary(Node):
    """A node over streams of one schema."""

    branches: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The branches."""
        return self.branches

    def __post_init__(self) -> None:
        """The branches agree."""
        check_agree(type(self).__name__, self.branches)

    def _over(self, inputs: tuple[Node, ...]) -> Self:
        return replace(self, branches=inputs)

    @cached_property
    def schema(self) -> Schema:
        """The first branch's."""
        return self.branches[0].schema


@dataclass(frozen=True)
class Union(Nary):
    """Bag union of streams of one schema (Meld)."""

    @cached_property
    def schema(self) -> Schema:
        """The first branch's; if any branch has lives, so has the union."""
        first = self.branches[0].schema
        lives = next((b.schema.lives for b in self.branches if b.schema.lives is not None), None)
        return first if first.lives == lives else replace(first, lives=lives)

    @property
    def takes_revisions(self) -> bool:
        """Elements pass through as they come."""
        return True

    @cached_property
    def properties(self) -> StreamProperties:
        """Interleaving loses order and keys."""
        lifetimes = [b.properties.lifetime for b in self.branches]
        return StreamProperties(
            insert_only=all(b.properties.insert_only for b in self.branches),
            lifetime=None if None in lifetimes else max(x for x in lifetimes if x is not None),
        )

    @property
    def label(self) -> str:
        """How many branches meet."""
        return f"Union of {len(self.branches)} (Meld)"


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
class Settle(Unary):
    """Events once they can no longer change, in order of start (the papers' Cleanse)."""

    @cached_property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema

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
class Distinct(Unary):
    """Duplicates among the rows valid at one instant leave one row (DupElim)."""

    @cached_property
    def schema(self) -> Schema:
        """The input's."""
        return self.input.schema

    @cached_property
    def properties(self) -> StreamProperties:
        """All visible columns together are a key."""
        return replace(self.input.properties, key=frozenset(f.name for f in self.schema.visible))

    @property
    def label(self) -> str:
        """The operator's name in the papers."""
        return "Distinct (DupElim)"
