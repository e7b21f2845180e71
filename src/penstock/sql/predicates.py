"""What a query reads under a name, with the condition that tells punctuation rows from data, where there is one."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import QueryError, StreamError
from penstock.model.progress import Progress, Punctuated, Several
from penstock.model.schema import Schema
from penstock.plan.catalog import Catalog, closest
from penstock.plan.expressions import Column, Expression
from penstock.plan.nodes import Node, Source
from penstock.plan.rules.stamps import latent_source
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.dialect import room_to_recurse
from penstock.sql.reading import Reading
from penstock.sql.tokens import check_shape_of_expression, parse_expression


def source_of(catalog: Catalog, name: str) -> Node | None:
    """What a query reads under a name: a stream, or the plan of a view; None if there is neither."""
    view = catalog.views.get(name.lower())
    found = catalog.stream(name)
    if view is not None or found is None:
        return view
    condition = None
    if isinstance(found.progress, Punctuated):
        condition = punctuation_predicate(found.progress, found.schema, catalog, found.name)
    conditions = punctuation_predicates(found.progress, found.schema, catalog, found.name)
    source = Source(
        found.name,
        found.schema,
        found.progress,
        found.properties,
        found.max_ahead,
        punctuation=condition,
        punctuations=conditions,
        stamped=found.stamped,
    )
    return latent_source(source) if found.latent else source


def punctuation_predicates(
    progress: Progress, schema: Schema, catalog: Catalog, stream: str
) -> tuple[Expression | None, ...]:
    """The bound predicate of each entry of the progress of several attributes; none of any other progress."""
    if not isinstance(progress, Several):
        return ()
    return tuple(
        punctuation_predicate(how, schema, catalog, stream) if isinstance(how, Punctuated) else None
        for _, how in progress.entries
    )


def punctuation_predicate(progress: Punctuated, schema: Schema, catalog: Catalog, stream: str) -> Expression:
    """The bound predicate of a punctuated stream."""
    _check_per(progress, schema, stream)
    text = progress.predicate
    try:
        with room_to_recurse():
            tree = parse_expression(text)
    except QueryError as error:
        raise StreamError(
            "The predicate of punctuated() does not parse.",
            where=f"stream {stream}",
            got=text[:80],
            hint=error.got or error.what,
        ) from None
    reading = Reading(text)

    def resolve(node: exp.Expr) -> Expression | None:
        if not isinstance(node, exp.Column):
            return None
        reading.name(node)
        if node.name not in schema:
            raise StreamError(
                "The predicate of punctuated() names an unknown column.",
                where=f"stream {stream}", got=node.name, hint=closest(node.name, schema.names),
            )  # fmt: skip
        found = schema[node.name]
        return Column(found.name, found.type)

    try:
        with room_to_recurse():
            bound = ExpressionBinder(catalog, reading, resolve).predicate(tree)
            reading.finish(tree)
            check_shape_of_expression(text)
        return bound
    except QueryError as error:
        raise StreamError(
            "The predicate of punctuated() is wrong: " + error.what,
            where=f"stream {stream}",
            got=error.got,
            hint=error.hint,
        ) from None


def _check_per(progress: Punctuated, schema: Schema, stream: str) -> None:
    """The columns whose values say which rows punctuation is about are columns of the stream, and not its time."""
    for name in progress.per:
        if name not in schema:
            raise StreamError(
                "punctuated(per=…) names an unknown column.",
                where=f"stream {stream}",
                got=name,
                hint=closest(name, schema.names),
            )
        if schema.index(name) == schema.time_index:
            raise StreamError(
                "The time of a punctuation row is its bound, so it tells no rows apart.",
                where=f"stream {stream}",
                got=str(progress),
                hint="name other columns in per=…",
            )
