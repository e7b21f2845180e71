"""Streams that are replicas of one, declared as one: the merge node of a flow's catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.errors import MergeError, StreamError
from penstock.flow.user_code import NAME
from penstock.model.properties import StreamProperties
from penstock.model.schema import Schema
from penstock.operators.merge.choose import choose
from penstock.operators.merge.options import check_options, check_properties, needs_index
from penstock.operators.merge.policies import policy_of
from penstock.plan.catalog import Catalog, closest
from penstock.plan.nodes import AlterLifetime, Merge, Node, Source
from penstock.sql.predicates import source_of

DEFAULT_POLICY = "half frozen"
WAITING = ("half frozen", "conservative")
"""Policies that never take an event back."""
LOCAL = ("follow leader", "highest insert", "most unfrozen")
"""Policies that compare whole inputs, which a merge that is spread over slices and buckets cannot."""


def merge_node(
    catalog: Catalog,
    name: str,
    streams: Sequence[str],
    key: Sequence[str] | None,
    properties: StreamProperties | None,
    algorithm: str | None,
    policy: str,
    lag: int,
    driver: str,
    elements: bool,
    on_divergence: str = "report",
) -> Merge:
    """The node that merges declared streams, after all checks."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StreamError(
            "A stream's name must be an identifier.", got=repr(name)[:200], hint="letters, digits and underscores"
        )
    if not isinstance(streams, Sequence) or isinstance(streams, str | bytes):
        raise MergeError("The replicas are a list of streams.", where=f"stream {name}", got=repr(streams)[:200])
    _check_key(key, name)
    check_properties(properties, f"stream {name}")
    if source_of(catalog, name) is not None:
        raise StreamError("There is a stream of that name already.", got=name, hint="choose another name")
    if not streams:
        raise MergeError("A merge needs at least one input.", where=f"stream {name}")
    sources = [_source(catalog, s, name) for s in streams]
    names = tuple(s.name if isinstance(s, Source) else called for s, called in zip(sources, streams, strict=True))
    if len({each.lower() for each in names}) < len(names):
        raise MergeError("A stream is its own replica.", where=f"stream {name}", got=", ".join(names))
    stamped = [n for n in names if (info := catalog.stream(n)) is not None and info.stamped]
    if stamped:
        raise MergeError(
            "Replicas that are stamped where they enter have no times in common.",
            where=f"stream {name}",
            got=f"{', '.join(stamped)} with timestamps=pk.internal()",
            hint="replicas bring their times: declare them without, or with pk.external()",
        )
    check_options(names, policy, lag, driver, on_divergence, f"stream {name}")
    check_schemas(dict(zip(names, (s.schema for s in sources), strict=True)), f"stream {name}")
    elements = _lived(dict(zip(names, sources, strict=True)), elements, name)
    known = _known(sources, key, properties, elements, name)
    choice = choose(known, algorithm, needs_index(policy, DEFAULT_POLICY, lag, driver))
    if choice.name not in ("R0", "R1", "R2", "R3", "R4"):
        raise MergeError("Only R0 to R4 run in a flow.", where=f"stream {name}", got=choice.name, hint="use pk.merge")
    if choice.name in ("R3", "R4"):
        _check_policy(policy, elements, name)
    columns = sources[0].schema.names
    places = None if known.key is None else tuple(columns.index(k) for k in sorted(known.key) if k in columns)
    return Merge(tuple(sources), names, choice.name, policy, lag, driver, elements, str(choice), on_divergence, places)


def _source(catalog: Catalog, stream: str, name: str) -> Node:
    found = source_of(catalog, stream) if isinstance(stream, str) else None
    if not isinstance(found, Source | AlterLifetime):
        raise StreamError(
            "There is no such stream.",
            where=f"stream {name}",
            got=str(stream)[:200],
            hint=closest(str(stream), catalog.names),
        )
    return found


def check_schemas(schemas: Mapping[str, Schema], where: str = "") -> None:
    """Replicas have the same visible columns, of the same types, and the same time."""
    first: tuple[str, Schema] | None = None
    for name, schema in schemas.items():
        if first is None:
            first = name, schema
            continue
        one, other = ([(f.name, f.type) for f in s.visible] for s in (first[1], schema))
        if one != other or schema.time != first[1].time or schema.lifetime != first[1].lifetime:
            raise MergeError(
                "Replicas have the same columns and the same time.",
                where=where,
                got=f"{name}: {schema.ddl}, time {schema.time}",
                hint=f"{first[0]}: {first[1].ddl}, time {first[1].time}",
            )


def _known(
    sources: Sequence[Node],
    key: Sequence[str] | None,
    properties: StreamProperties | None,
    elements: bool,
    name: str,
) -> StreamProperties:
    declared = [s.properties for s in sources]
    found = properties or replace(
        declared[0],
        ordered=all(d.ordered for d in declared),
        strictly_ordered=all(d.strictly_ordered for d in declared),
        deterministic_ties=all(d.deterministic_ties for d in declared),
    )
    if key is not None:
        missing = [k for k in key if k not in sources[0].schema]
        if missing:
            raise StreamError(
                "The key names an unknown column.",
                where=f"stream {name}",
                got=missing[0],
                hint=closest(missing[0], sources[0].schema.names),
            )
        found = replace(found, key=frozenset(key))
    return replace(found, insert_only=found.insert_only and all(d.insert_only for d in declared))


def _lived(sources: Mapping[str, Node], elements: bool, name: str) -> bool:
    """Whether the replicas have lives of their own; all have, or none."""
    lived = [s.schema.lives is not None for s in sources.values()]
    plain = next((each for each, s in sources.items() if s.schema.lives is None), None)
    if plain is not None and (elements or any(lived)):
        raise MergeError(
            "A merge of elements needs to know how long rows live.",
            where=f"stream {name}",
            got=f"{plain} was declared as plain rows",
            hint='declare it with lives=("vs", "ve", "v_old")',
        )
    return all(lived)


def _check_key(key: Sequence[str] | None, name: str) -> None:
    listed = isinstance(key, Sequence | set | frozenset) and not isinstance(key, str | bytes)
    if key is not None and not (listed and all(isinstance(k, str) for k in key)):
        raise MergeError("A key is a list of columns.", where=f"stream {name}", got=repr(key)[:200], hint="key=['k']")


def _check_policy(policy: str, elements: bool, name: str) -> None:
    chosen = policy_of(policy).name
    if chosen in LOCAL:
        raise MergeError(
            "This policy compares whole inputs, which a merge in a flow cannot.",
            where=f"stream {name}",
            got=policy,
            hint="use pk.merge in-process, or another policy",
        )
    if not elements and chosen not in WAITING:
        raise MergeError(
            "Plain rows cannot be taken back, and this policy may have to.",
            where=f"stream {name}",
            got=policy,
            hint=f"one of {', '.join(WAITING)}, or elements=True",
        )
