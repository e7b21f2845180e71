"""What a checkpoint is checked against: all that its state, and the output beside it, depend on.

The description of a query is plain data: its streams (time, progress, the columns it reads, with their types), the
functions it calls, the columns of its result, and its operators by identity. `check` compares the description that was
saved with that of the query at hand and refuses what does not fit, naming the parts that differ, as they were and as
they are. What a query does not read may change freely: other columns of a stream, their types and their order.

An operator is known by what it and all below it mean, so its state is of use wherever in a plan it stands. Operators
that hold none may come and go: a HAVING over an aggregate, another column computed of its results. An operator with
state must have had it: it has missed what came before. And state must not be left behind, for it is of rows that the
query has taken and not answered for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from penstock.errors import CheckpointError
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import USER, Call, walk
from penstock.plan.function_code import fingerprint, same_code
from penstock.plan.identity import Known, expressions_of, identities, progress_form
from penstock.plan.meaning import meanings, wordless
from penstock.plan.nodes import GroupAggregate, Node, Source, WindowAggregate
from penstock.plan.renaming import naming

LABEL = 300
"""So much of an operator's label is kept."""
SHOWN = 5
"""So many differences are named in an error."""


def describe(plan: Node, catalog: Catalog, known: Sequence[Known] | None = None) -> dict[str, Any]:
    """The description of a query; it goes through JSON unchanged. `known` are the identities that its nodes go by."""
    own = identities(plan)
    known = own if known is None else known
    streams: dict[str, Any] = {}
    for each in known:
        if isinstance(each.node, Source):
            fields = [f for f in each.node.schema.fields if each.reads is None or f.name in each.reads]
            said = streams.setdefault(each.node.name.lower(), {"time": each.node.schema.time, "columns": {}})
            said["time_format"] = each.node.schema.time_format
            said["columns"] |= {f.name: str(f.type) for f in fields}
            if each.reads is None:
                said["order"] = ", ".join(f.name for f in fields)
            said["progress"] = str(each.node.progress)
            said["max_ahead"] = each.node.max_ahead is not None
            if each.node.stamped:
                said["stamped"] = "latent" if each.node.latent else "internal"
            if each.node.schema.lives is not None:
                said["lives"] = ", ".join(each.node.schema.lives)
            said["progress_form"] = json.dumps(progress_form(each.node), sort_keys=True)
    return {
        "streams": streams,
        "functions": _functions(plan, catalog),
        "result": [[f.name, str(f.type)] for f in plan.schema.visible],
        "operators": [[k.identity, k.own, k.node.label[:LABEL]] for k in known],
        "meanings": dict(zip(meanings(own), [k.identity for k in known], strict=True)),
        "names": {meaning: list(naming(k.node)) for meaning, k in zip(wordless(own), own, strict=True)},
    }


def _functions(plan: Node, catalog: Catalog) -> dict[str, Any]:
    """The users' functions and aggregates that a plan calls."""
    found: dict[str, Any] = {}
    for name in _called(plan):
        if name in catalog.functions:
            function = catalog.functions[name]
            found[name] = [str(function.returns), fingerprint(function.function, function.version)]
    for node in plan.walk():
        for call in node.aggregates if isinstance(node, WindowAggregate | GroupAggregate) else ():
            if call.function.startswith(USER):
                name = call.function.removeprefix(USER)
                aggregate, returns = catalog.aggregates[name]
                found[name] = [str(returns), fingerprint(aggregate, catalog.versions.get(name))]
    return dict(sorted(found.items()))


def _called(plan: Node) -> Iterator[str]:
    for node in plan.walk():
        expressions = list(expressions_of(node))
        if isinstance(node, Source) and node.punctuation is not None:
            expressions.append(node.punctuation)
        for expression in expressions:
            for part in walk(expression):
                if isinstance(part, Call) and part.name.startswith(USER):
                    yield part.name.removeprefix(USER).lower()


@dataclass(frozen=True)
class Change:
    """A part that is not as it was."""

    part: str
    was: str
    now: str
    hint: str = ""

    def __str__(self) -> str:
        """For a person."""
        return f"{self.part}: was {self.was}, is {self.now}"


def check(
    saved: Any,
    now: dict[str, Any],
    where: str,
    what: str = "checkpoint",
    *,
    stateless: Collection[str] = (),
    fixed_result: bool = True,
) -> None:
    """Refuse a saved description that is not that of the query at hand.

    Args:
        saved: the description beside the state.
        now: that of the query.
        where: for an error, and `what` it is a description of.
        what: see there.
        stateless: the identities, saved and present, of operators that hold no state.
        fixed_result: whether the result must have the columns that it had, because more of it is there already.
    """
    try:
        found = list(differences(saved, now, stateless, fixed_result=fixed_result))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"The description of the {what} is damaged.",
            where=where,
            got=f"{type(error).__name__}: {error}",
            hint="use an intact copy, or start anew",
        ) from None
    if not found:
        return
    shown = "\n         ".join(map(str, found[:SHOWN]))
    more = f"\n         and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise CheckpointError(
        f"The {what} was made by another query.",
        where=where,
        got=shown + more,
        hint=next((d.hint for d in found if d.hint), "go back to what it was, or give this query another name"),
    )


def differences(
    saved: dict[str, Any], now: dict[str, Any], stateless: Collection[str] = (), *, fixed_result: bool = True
) -> Iterator[Change]:
    """The parts that differ; where parts say why operators differ, the operators are not named again."""
    was, is_ = saved["operators"], now["operators"]
    known = {identity for identity, _, _ in was} ^ {identity for identity, _, _ in is_}
    fits = known <= set(stateless)
    found = [*_streams(saved["streams"], now["streams"])]
    found += _called_functions(saved["functions"], now["functions"], everywhere=not fits)
    if fixed_result or found or not fits:
        found += _result(saved["result"], now["result"])
    if not fits and (not found or len(was) != len(is_)):
        found += _operators(was, is_)
    yield from found


def _streams(was: dict[str, Any], now: dict[str, Any]) -> Iterator[Change]:
    if was.keys() != now.keys():
        yield Change("streams that are read", ", ".join(sorted(was)), ", ".join(sorted(now)))
    for name in sorted(was.keys() & now.keys()):
        old, new = was[name], now[name]
        if old["time"] != new["time"]:
            yield Change(f"time of stream {name}", old["time"], new["time"])
        formats = [of.get("time_format", new["time_format"]) for of in (old, new)]  # an earlier release did not say
        if formats[0] != formats[1]:
            yield Change(f"time_format of stream {name}", *["none" if f is None else repr(f) for f in formats])
        if old["progress_form"] != new["progress_form"]:
            yield Change(f"progress of stream {name}", old["progress"], new["progress"])
        if old.get("stamped") != new.get("stamped"):
            yield Change(f"timestamps of stream {name}", *[of.get("stamped", "external") for of in (old, new)])
        if old.get("lives") != new.get("lives"):
            yield Change(f"lives of stream {name}", *[of.get("lives", "none") for of in (old, new)])
        if old["max_ahead"] != new["max_ahead"]:
            yield Change(
                f"limit max_ahead of stream {name}", *["some" if of["max_ahead"] else "none" for of in (old, new)]
            )
        if old.get("order") != new.get("order") and old["columns"].keys() == new["columns"].keys():
            orders = [of.get("order", "any") for of in (old, new)]
            yield Change(f"order of the columns of stream {name}, whose rows are kept whole", *orders)
        for column in sorted(old["columns"].keys() | new["columns"].keys()):
            types = [of["columns"].get(column, "not read") for of in (old, new)]
            if types[0] != types[1]:
                yield Change(f"column {column} of stream {name}", *types)


def _called_functions(was: dict[str, Any], now: dict[str, Any], *, everywhere: bool) -> Iterator[Change]:
    """Functions of other code; and those that are called by one of the two only, unless that is none of the state's."""
    for name in sorted(was.keys() | now.keys() if everywhere else was.keys() & now.keys()):
        if name not in was or name not in now:
            yield Change(f"function {name}", *["called" if name in of else "not called" for of in (was, now)])
            continue
        (old_type, old_code), (new_type, new_code) = was[name], now[name]
        if old_type != new_type:
            yield Change(f"type of function {name}", old_type, new_type)
        if not same_code(old_code, new_code):
            hint = f"if it means the same, register it with version={old_code!r}; else give this query another name"
            yield Change(f"code of function {name}", old_code, new_code, hint)


def _result(was: list[list[str]], now: list[list[str]]) -> Iterator[Change]:
    if was == now:
        return
    old, new = [", ".join(f"{n} {t}" for n, t in columns) for columns in (was, now)]
    if sorted(was) == sorted(now):
        hint = "name the columns in the old order; what reads the output by position would take one for another"
        yield Change("order of the result's columns", old, new, hint)
        return
    yield Change("columns of the result", old, new)


def _operators(was: list[list[str]], now: list[list[str]]) -> Iterator[Change]:
    """The operators that are not those that were, consumers first, each beside the one in whose place it is."""
    matcher = SequenceMatcher(None, [own for _, own, _ in was], [own for _, own, _ in now], autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            continue
        old, new = was[old_from:old_to], now[new_from:new_to]
        for at in range(max(len(old), len(new))):
            labels = [of[at][2] if at < len(of) else "none" for of in (old, new)]
            if labels[0] == labels[1]:
                labels = [f"{label} ({of[at][1]})" for label, of in zip(labels, (old, new), strict=True)]
            yield Change(f"operator {(new_from if new else old_from) + at + 1} of the plan", *labels)
