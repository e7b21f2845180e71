"""The logical plan: frozen nodes, each of which derives its schema and properties from its inputs.

A node says what is computed, never how. A node that does not fit its inputs cannot be made (`integrity`). What every
node is, is in `node`, aggregation in `aggregate_nodes`, numbering in `rank_nodes`, joins in `join_nodes`, joins with
tables in `lookup_nodes`, how long events live in `lived_nodes`, what is newest in `update_nodes`, elements of arrays in
`unnest_node`, patterns in `pattern_nodes`; whoever uses nodes finds all of them here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.model.cached import cached_property
from penstock.model.made import is_made
from penstock.model.progress import Progress, Punctuated, Several
from penstock.model.properties import StreamProperties, renamed_all
from penstock.model.schema import BIGINT, Field, Schema
from penstock.model.time import show_span
from penstock.plan.aggregate_nodes import WINDOW_FIELDS, GroupAggregate, WindowAggregate, window_fields
from penstock.plan.expressions import Call, Column, Expression, columns_in, worded
from penstock.plan.integrity import check_column, check_predicate, check_reads, check_rises
from penstock.plan.join_nodes import Join
from penstock.plan.lived_nodes import AlterLifetime, Ends, Merge, Settle
from penstock.plan.lookup_nodes import Lookup
from penstock.plan.multi_nodes import MultiJoin
from penstock.plan.node import Nary, Node, SameColumns, Unary
from penstock.plan.pattern_nodes import Pattern
from penstock.plan.rank_nodes import RowNumber
from penstock.plan.stamp_node import Stamp
from penstock.plan.unnest_node import Unnest
from penstock.plan.update_nodes import Conflate, Newest

__all__ = [
    "ROW_NUMBER", "WINDOW_FIELDS", "AlterLifetime", "Conflate", "Distinct", "Ends", "GroupAggregate", "Join", "Lookup",
    "Merge", "MultiJoin", "Nary", "Newest", "Node", "NumberRows", "Pattern", "Project", "RowNumber", "Select", "Settle",
    "Source", "Stamp", "Unary", "Union", "Unnest", "WindowAggregate", "window_fields",
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
    punctuations: tuple[Expression | None, ...] = ()
    """The same for each entry of the progress, where several attributes progress."""
    stamped: bool = False
    """Whether rows bring no times, and are stamped as they enter."""
    latent: bool = False
    """Whether these stamps say nothing before somebody needs a time (`rules.stamps`)."""

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
        own = [field.name for field in self.schema.fields if not is_made(field.name)]
        return tuple(i for i, name in enumerate(own) if name not in speaking)

    @cached_property
    def silent_in(self) -> tuple[tuple[int, ...], ...]:
        """Of each entry of the progress of several attributes, the columns that must be null in its punctuation."""
        if not isinstance(self.progress, Several):
            return ()
        read = [columns_in(p) for p in self.punctuations if p is not None]
        speaking = {*self.schema.attributes}.union(*read)
        silent = tuple(i for i, field in enumerate(self.schema.fields) if field.name not in speaking)
        entries = [how for _, how in self.progress.entries]
        return tuple(silent if isinstance(how, Punctuated) and not how.whole_stream else () for how in entries)

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
        if self.latent:
            return f"Source {self.name} (no time so far)"
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
        number = frozenset({ROW_NUMBER})
        updated_by = self.input.properties.update_key
        return StreamProperties(
            ordered=True, strictly_ordered=True, key=number, unique=number, max_disorder=0, update_key=updated_by
        )


@dataclass(frozen=True)
class Select(SameColumns):
    """The rows for which the predicate is true."""

    predicate: Expression

    def __post_init__(self) -> None:
        """The predicate is a condition on columns of the input."""
        check_predicate("Select", self.predicate, self.input.schema)

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
        return f"Select {worded(self.predicate, self.input.schema)}"


@dataclass(frozen=True)
class Project(Unary):
    """New columns from expressions; the time column travels along, hidden if it was not asked for."""

    columns: tuple[tuple[str, Expression], ...]
    time: str
    hidden: frozenset[str] = frozenset()
    unnamed: frozenset[str] = field(default=frozenset(), compare=False)
    """Columns whose names are not the query's: people are shown what they are."""

    def __post_init__(self) -> None:
        """Expressions read columns of the input; time and hidden columns are among those that come out."""
        check_reads("Project", [e for _, e in self.columns], self.input.schema)
        for name in self.hidden:
            check_column("Project, hidden", name, None, self.schema)
        if self.maps_time:
            check_rises("Project, time", dict(self.columns)[self.time])

    @cached_property
    def schema(self) -> Schema:
        """One column per expression."""
        below = self.input.schema
        unnamed = self.unnamed | self.hidden
        fields = tuple(
            Field(name, e.type, name in self.hidden, worded(e, below) if name in unnamed else "")
            for name, e in self.columns
        )
        lifetime = 1 if self.maps_time else below.lifetime
        return Schema(fields, self.time, lifetime, lives=below.lives if self.keeps_time else None)

    @property
    def keeps_time(self) -> bool:
        """Whether rows start where they did."""
        time = dict(self.columns).get(self.time)
        return isinstance(time, Column) and time.name == self.input.schema.time

    @property
    def moves_time(self) -> bool:
        """Whether another attribute of the input becomes the time."""
        time = dict(self.columns).get(self.time)
        return isinstance(time, Column) and time.name != self.input.schema.time

    @property
    def maps_time(self) -> bool:
        """Whether the time is computed from an attribute of the input, with which it rises (`plan.monotone`)."""
        time, own = dict(self.columns).get(self.time), self.input.schema.time
        if not isinstance(time, Call) or own is None:
            return False
        only_wider = time.name == "cast" and time.args == (Column(own, self.input.schema[own].type),)
        return not only_wider

    @property
    def takes_revisions(self) -> bool:
        """An insert and its adjusts become the same row, as long as its start stays."""
        return self.keeps_time

    @cached_property
    def first_names(self) -> dict[str, str]:
        """The name, the first if there are several, under which people see each column that comes out as it is."""
        return {e.name: n for n, e in reversed(self.columns) if isinstance(e, Column) and n not in self.hidden}

    @cached_property
    def properties(self) -> StreamProperties:
        """Order stays; a key stays if all of it is still there, and so does what is unique, hidden or not."""
        below = self.input.properties
        if self.moves_time or self.maps_time:
            below = replace(below, ordered=False, strictly_ordered=False, deterministic_ties=False, max_disorder=None)
        renamed = {e.name: name for name, e in self.columns if isinstance(e, Column) and name not in self.hidden}
        key = below.key
        kept = key is not None and key <= renamed.keys()
        called = {e.name: name for name, e in self.columns if isinstance(e, Column)}
        return replace(
            below,
            key=frozenset(renamed[k] for k in key) if kept and key is not None else None,
            unique=renamed_all(below.unique, called),
            update_key=renamed_all(below.update_key, self.first_names),
        )

    @property
    def label(self) -> str:
        """The visible columns."""
        below, shown = self.input.schema, []
        for name, e in self.columns:
            if name not in self.hidden:
                said = worded(e, below)
                shown.append(said if name in self.unnamed or said == name else f"{said} AS {name}")
        return f"Project {', '.join(shown)}"


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
class Distinct(SameColumns):
    """Duplicates among the rows valid at one instant leave one row (DupElim)."""

    @cached_property
    def properties(self) -> StreamProperties:
        """All visible columns together are a key; stretches of time come when they are known, whenever they began."""
        key = frozenset(f.name for f in self.schema.visible)
        if self.schema.lives is not None:
            return StreamProperties(key=key, lifetime=None, update_key=self.input.properties.update_key)
        return replace(self.input.properties, key=key)

    @property
    def label(self) -> str:
        """The operator's name in the papers."""
        return "Distinct (DupElim)"
