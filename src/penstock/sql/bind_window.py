"""From a window clause to a window: which kind it is, on which attribute, in which units.

A window can only stand on a progressing attribute, since nothing else says when it is complete. The stream's time is
one; a stream may declare others; `row-num`, the number of a row by arrival, is one that every stream has.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.schema import DataType, Schema
from penstock.model.text import read_timestamp
from penstock.model.time import Domain, Span, longest, show_span
from penstock.plan.catalog import closest
from penstock.plan.expressions import Column, Expression
from penstock.plan.monotone import stretches
from penstock.plan.nodes import ROW_NUMBER, WINDOW_FIELDS, Node, NumberRows
from penstock.plan.pattern_nodes import WORDS
from penstock.plan.progressing import derived
from penstock.plan.progressing import progressing as attributes_of
from penstock.plan.rules.by_arrival import numbered
from penstock.plan.windows import AnyWindow, LandmarkWindow, PartitionedWindow, SlideByTupleWindow, SlidingWindow
from penstock.sql.clause import Form, WindowClause
from penstock.sql.reading import shown
from penstock.sql.scope import Scope
from penstock.sql.window_functions import BOUNDS, clause_of, window_call

LONGEST = longest(Domain.INTEGER)
"""The greatest length and the farthest origin: with them, times of 64 bits leave room for both ends of a window."""
_NOT_PROGRESSING = "The windowing attribute does not progress: nothing says when one of its windows is complete."
ROW_NUMBER_NAMES = frozenset({"row-num", "row_num", "rownum"})


class WindowBinder:
    """Gives meaning to one clause over a stream of one schema."""

    def __init__(self, clause: WindowClause, scope: Scope, sql: str) -> None:
        """`scope` has the rows below the aggregation."""
        self.clause, self.scope, self.sql = clause, scope, sql
        self._grouped = clause.form is not Form.TABLE
        self.times: dict[str, Expression] = {}
        """Columns that windows stand on, as expressions over the attribute that they rise with."""

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return self.scope.node.schema

    def error(self, what: str, parameter: str, got: str = "", hint: str = "") -> QueryError:
        """An error that points at a parameter."""
        line, column = self.clause.position(parameter)
        return QueryError(what, sql=self.sql, line=line, column=column, got=got, hint=hint)

    @property
    def counts_arrivals(self) -> bool:
        """Whether the window counts rows by arrival, so that rows must be numbered first."""
        return self._slides_by_number or (
            (self.clause.wa or "").lower() in ROW_NUMBER_NAMES and self._row_number_column() is None
        )

    @property
    def _slides_by_number(self) -> bool:
        return (self.clause.sattr or "").lower() in ROW_NUMBER_NAMES and self.clause.sattr_rank is None

    def numbered(self, node: Node) -> NumberRows:
        """The rows of a node with their numbers, which are their time unless only SLIDE counts them."""
        given = self._row_number_column()
        if self._slides_by_number and given is not None:
            raise self.error(
                "SATTR row-num counts rows by arrival, and the stream has a column of that name.",
                "sattr",
                got=given,
                hint="rename the column in a sub-query, or slide by RANGE and SLIDE on it as the stream's time",
            )
        return numbered(node, keeps_time=self._slides_by_number)

    def _row_number_column(self) -> str | None:
        return next((f.name for f in self.schema.fields if f.name.lower() in ROW_NUMBER_NAMES), None)

    def only(self, kind: str, *parameters: str) -> None:
        """Refuse a parameter that this kind of window does not read."""
        for parameter in self.clause.positions:
            if parameter not in parameters:
                name = parameter.removesuffix("_rank").removesuffix("_all").upper()
                raise self.error(f"{name} has no meaning in {kind}.", parameter, got=name, hint="leave it out")

    def bind(self) -> AnyWindow:
        """The window."""
        clause = self.clause
        if clause.rattr is not None or clause.sattr is not None or clause.sattr_rank is not None:
            return self._slide_by_tuple()
        if clause.wa is None:
            raise self.error(
                "The window does not say which attribute it is on.", "clause", hint="add WA and the time attribute"
            )
        if clause.pa:
            return self._partitioned()
        attribute = self.progressing(clause.wa, "wa")
        domain = self._domain(attribute)
        if clause.range_all:
            self.only("a landmark window", "range_all", "slide", "wa", "origin")
            return LandmarkWindow(attribute, domain, self.length("slide", domain), self._origin(domain))
        self.only("a sliding window", "range", "tumbling", "slide", "wa", "origin", "offset")
        range_ = self.length("range", domain)
        if clause.tumbling:
            if clause.slide is not None:
                raise self.error("A tumbling window has no SLIDE of its own.", "slide", got=str(clause.slide))
            return SlidingWindow(attribute, domain, range_, range_, self._aligned(domain, range_, range_))
        if clause.slide is None:
            raise self.error(
                "SLIDE is missing.", "range", hint="add SLIDE, or write RANGE TUMBLING for windows that do not overlap"
            )
        slide = self.length("slide", domain)
        return SlidingWindow(attribute, domain, range_, slide, self._aligned(domain, range_, slide))

    def _aligned(self, domain: Domain, range_: int, slide: int) -> int:
        """The origin, from which the ends of windows are counted; other forms say where windows start."""
        clause = self.clause
        if clause.form is Form.BRACKETS:
            return self._origin(domain)
        offset = 0
        if clause.offset is not None:
            offset = clause.offset.ticks(domain) or 0
            if clause.offset.ticks(domain) is None:
                raise self.error("The unit does not fit the windowing attribute.", "offset", got=str(clause.offset))
        if clause.form is Form.WINDOW and slide > range_:
            raise self.error("window() takes no slide longer than its windows.", "slide", got=str(clause.slide))
        if clause.form is Form.WINDOW and abs(offset) >= slide:
            raise self.error("window() starts less than a slide off.", "offset", got=str(clause.offset))
        return (offset + range_) % slide

    # What SELECT and GROUP BY call the window, where it is no clause

    def is_own(self, node: exp.Expr) -> bool:
        """Whether a column is one of the window's, whatever columns the rows have."""
        if not isinstance(node, exp.Column):
            return False
        qualifier, name = str(node.table).lower(), node.name.lower()
        if self.clause.form is Form.WINDOW:
            return qualifier == "window" and "window" not in self.scope.qualifiers and name in ("start", "end")
        of_table = self.clause.form is Form.TABLE and (not qualifier or qualifier in self.scope.qualifiers)
        return of_table and name in WINDOW_FIELDS

    def takes_key(self, key: exp.Expr) -> bool:
        """Whether a part of GROUP BY only says that rows are grouped by window."""
        if self.is_own(key):
            self.scope.reading.whole(key)
            self._grouped = True
            return True
        return window_call(key) is not None

    def check_grouped(self, tree: exp.Expr) -> None:
        """Refuse windows of a table that nothing groups by: elsewhere that means all rows of each window."""
        if not self._grouped:
            raise self.scope.reading.error(
                "Rows of windows are aggregated by window.", tree, hint="add GROUP BY window_start, window_end"
            )

    def column(self, node: exp.Expr) -> str | None:
        """The column of the window that a part of the select list or of HAVING is."""
        reading = self.scope.reading
        if self.is_own(node) or is_of_window(node):
            reading.whole(node)
            name = node.name.lower()
            return name if name in WINDOW_FIELDS else f"window_{name}"
        if self.clause.form is Form.WINDOW and isinstance(node, exp.Column) and node.name.lower() == "window":
            raise reading.error("A window has two bounds.", node, hint="write window.start and window.end")
        bound = BOUNDS.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None
        if bound is None or self.clause.form is not Form.GROUP:
            return None
        if not clause_of(node, Form.GROUP, reading, bound[0]).says_the_same(self.clause):
            raise reading.error(
                "This window is another one than that of GROUP BY.", node, got=shown(node), hint="give both the same"
            )
        return bound[1]

    @property
    def is_life(self) -> bool:
        """Whether the clause says no more than how long the rows of the stream before it live."""
        return self.clause.after_stream and set(self.clause.positions) == {"range"}

    def life(self) -> int:
        """How long rows live, in ticks."""
        if self.clause.range is not None and self.clause.range.is_rows:
            raise self.error("Rows live for a length of time.", "range", got=str(self.clause.range))
        return self.length("range", self.schema.domain)

    def _found(self, name: str, parameter: str) -> list[str]:
        """What the columns are called that an attribute may be, by its name with or without the stream's."""
        found = self.scope.called(name, None) if "." in name else []
        qualifiers = [name[:at] for at, char in enumerate(name) if char == "."]  # a name in quotes may have dots too
        known = [each for each in qualifiers if each.lower() in self.scope.qualifiers]
        if qualifiers and not known and not found:
            raise self.error(
                "Unknown stream.", parameter, got=name, hint=closest(qualifiers[-1], sorted(self.scope.qualifiers))
            )
        for qualifier in known if qualifiers else ("",):
            bare = name[len(qualifier) + 1 :] if qualifier else name
            if bare.lower() in ROW_NUMBER_NAMES:
                bare = self._row_number_column() or ROW_NUMBER
            found = [*found, *(each for each in self.scope.called(bare, qualifier or None) if each not in found)]
        if len(found) > 1:
            raise self.error("The name means several columns.", parameter, got=name, hint="say of which stream")
        return found

    def progressing(self, name: str, parameter: str) -> str:
        """The progressing attribute of a name."""
        found = next(iter(self._found(name, parameter)), None)
        if found is None:
            raise self.error(
                "The windowing attribute does not exist.",
                parameter,
                got=name,
                hint=f"columns: {', '.join(f.name for f in self.schema.visible)}",
            )
        known = attributes_of(self.scope.node)
        computed = derived(self.scope.node, Column(found, self.schema[found].type)) if found not in known else None
        if computed is not None and computed.type.domain is not None:
            self.times[found] = computed
            return found
        if found not in known:
            named = [said for each in known if (said := self.scope.said(each)) is not None]
            use = "select the time in the sub-query"
            if self.schema[str(self.schema.time)].words == WORDS:
                told = f"the time here is {WORDS}: select that of the step that must not come, and use it"
                raise self.error(_NOT_PROGRESSING, parameter, got=name, hint=told)
            if named:
                more = f", or {', '.join(named[1:])}" if named[1:] else ""
                use = f"use the stream's time, {named[0]}{more}"
            raise self.error(
                _NOT_PROGRESSING,
                parameter,
                got=name,
                hint=use if len(self.scope.relations) > 1 else f"{use}, or declare the stream with time={name!r}",
            )
        return found

    def _domain(self, attribute: str) -> Domain:
        return _domain_of(self.schema[attribute].type)

    def length(self, parameter: str, domain: Domain) -> int:
        """A length in ticks."""
        span: Span | None = getattr(self.clause, parameter)
        name = parameter.upper()
        if span is None:
            raise self.error(f"{name} is missing.", "clause")
        ticks = span.ticks(domain)
        if ticks is None:
            unit = "a unit of time" if domain is Domain.TIMESTAMP else "rows or a plain number"
            what = "timestamp" if domain is Domain.TIMESTAMP else "number"
            raise self.error(
                f"The unit of {name} does not fit a {what} attribute.", parameter, got=str(span), hint=f"use {unit}"
            )
        if ticks <= 0:
            raise self.error(f"{name} must be greater than zero.", parameter, got=str(span))
        if ticks > longest(domain):
            most = show_span(longest(domain), domain)
            raise self.error(f"{name} is too long.", parameter, got=str(span), hint=f"at most {most}")
        return ticks

    def rows(self, parameter: str) -> int:
        """A number of rows."""
        span: Span | None = getattr(self.clause, parameter)
        if span is None or span.is_time:
            raise self.error(f"{parameter.upper()} must be a number of rows here.", parameter, got=str(span))
        if not 0 < span.amount <= LONGEST:
            raise self.error(f"{parameter.upper()} must be greater than zero.", parameter, got=str(span))
        return span.amount

    def _origin(self, domain: Domain) -> int:
        origin = self.clause.origin
        if origin is None:
            return 0
        if isinstance(origin, int) and domain is Domain.INTEGER and abs(origin) <= LONGEST:
            return origin
        if isinstance(origin, str) and domain is Domain.TIMESTAMP:
            try:
                return read_timestamp(origin)
            except ValueError:
                pass
        what = "a timestamp in quotes" if domain is Domain.TIMESTAMP else "a whole number"
        raise self.error(
            "ORIGIN does not fit the windowing attribute.", "origin", got=repr(origin), hint=f"write {what}"
        )

    def _partitioned(self) -> PartitionedWindow:
        if (self.clause.wa or "").lower() not in ROW_NUMBER_NAMES:
            raise self.error(
                "A partitioned window counts rows.",
                "pa",
                got=f"WA {self.clause.wa}",
                hint="use WA row-num, or GROUP BY instead of PA",
            )
        self.only("a partitioned window", "range", "slide", "wa", "pa")
        names = self.partitions()
        return PartitionedWindow(
            self.schema.time or ROW_NUMBER, Domain.INTEGER, self.rows("range"), self.rows("slide"), names
        )

    def partitions(self) -> tuple[str, ...]:
        """The columns that PA names."""
        names = []
        for name in self.clause.pa:
            found = self._found(name, "pa")
            if not found:
                raise self.error("The partitioning attribute does not exist.", "pa", got=name)
            names.append(found[0])
        return tuple(names)

    def _slide_by_tuple(self) -> SlideByTupleWindow:
        attribute_parameter = "wa" if self.clause.rattr is None else "rattr"
        self.only("a window that slides by rows", "range", "slide", "sattr", "sattr_rank", attribute_parameter)
        name = self.clause.rattr or self.clause.wa
        if name is None:
            raise self.error("RATTR is missing.", "clause", hint="name the attribute that RANGE is on")
        attribute = self.progressing(name, "rattr")
        rank = self.clause.sattr_rank
        if rank is not None and self._found(rank, "sattr_rank") != [attribute]:
            raise self.error(
                "rank() must be on the range attribute.", "sattr_rank", got=rank, hint=f"rank({attribute})"
            )
        if rank is None and (self.clause.sattr or "").lower() not in ROW_NUMBER_NAMES:
            raise self.error(
                "SATTR must be row-num or rank of the range attribute.", "sattr", got=str(self.clause.sattr)
            )
        domain = self._domain(attribute)
        return SlideByTupleWindow(
            attribute, domain, self.length("range", domain), self.rows("slide"), None if rank else ROW_NUMBER
        )


def is_of_window(node: exp.Expr) -> bool:
    """Whether a name is one of those that the columns of every window have."""
    return isinstance(node, exp.Column) and node.name.lower() in WINDOW_FIELDS and node.args.get("table") is None


def window_of_keys(node: Node, keys: Mapping[str, Expression]) -> tuple[SlidingWindow, dict[str, Expression]] | None:
    """The window that a GROUP BY without a clause means, and what it stands on if that is computed; None if it is none.

    A progressing attribute among the keys is a window of one tick. One that is computed and rises with an attribute is
    a window as long as it stays the same, where that is known, and of one tick of its own otherwise.
    """
    grouped = {bound.name for bound in keys.values() if isinstance(bound, Column)}
    for attribute in attributes_of(node):
        if attribute in grouped:
            return SlidingWindow(attribute, _domain_of(node.schema[attribute].type), 1, 1), {}
    for name, bound in keys.items():
        found = derived(node, bound)
        if found is None or bound.type.domain is None:
            continue
        known = stretches(found)
        if known is None:
            return SlidingWindow(name, _domain_of(bound.type), 1, 1), {name: found}
        if known.shift == 0:  # windows of the attribute are the same
            domain = _domain_of(node.schema[known.attribute].type)
            return SlidingWindow(known.attribute, domain, known.length, known.length, known.origin), {}
        origin = (known.origin + known.shift) % known.length
        return SlidingWindow(name, _domain_of(bound.type), known.length, known.length, origin), {name: found}
    return None


def _domain_of(type_: DataType) -> Domain:
    return type_.domain or Domain.INTEGER
