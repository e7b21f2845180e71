"""Conflation: of each key the latest value, as fast as whoever is given it can take it, and no older ones behind it.

```python
prices = pk.conflate(flow.query("SELECT * FROM quotes"), key="symbol", max_staleness="2 seconds")
run = prices.start(slow_dashboard)
run.read("GOOG")
```

`pk.conflate` does it to the result of a query, or to a source by itself; `flow.conflate` to a stream or a view, under a
new name that queries read, so that the queue is where it is wanted in a plan. `flow.latest` sheds nothing: it gives
each row of an update stream a life, until the next of its key.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Self

from penstock.errors import StreamError
from penstock.flow.declaring import named_columns
from penstock.flow.given_keys import given_key
from penstock.flow.user_code import NAME
from penstock.model.elements import is_whole
from penstock.model.schema import Schema
from penstock.model.time import Domain, Length, length_ticks, parse_span
from penstock.model.values import canonical_row
from penstock.plan.catalog import Catalog, closest
from penstock.plan.nodes import Conflate, Join, Lookup, Newest, Node, Select
from penstock.plan.rules.settle import settled
from penstock.plan.rules.stamps import stamped_where_needed
from penstock.plan.update_nodes import Pace
from penstock.sql.predicates import source_of

POLICIES = ("in_place", "fifo", "linecutting")
"""In which order keys are served."""
MEMORIES = ("on_demand", "naive")
"""Where tuples lie: on pages that go back once nothing waits there, or at a place of its own for each key."""
WINDOWS = ("lazy", "eager")
"""Which window of a key is the most recent: the last that is whole, or the last that has begun."""
QUEUES = (*POLICIES, "append", "shedding")
KEY = "key=['symbol'], or update_key=['symbol'] where the stream is declared; [] if each row updates the one before"


class FlowUpdates:
    """Declares conflated streams, and streams of what is current."""

    catalog: Catalog

    def conflate(
        self,
        name: str,
        stream: str,
        *,
        key: Sequence[str] | str | None = None,
        max_staleness: Length | None = None,
        policy: str = "in_place",
        budget: int | None = None,
        every: Length | None = None,
        access: Mapping[Any, Length] | None = None,
        adaptive: bool = False,
        lives: bool = False,
        windows: str | None = None,
        forget_after: Length | None = None,
        memory: str = "on_demand",
    ) -> Self:
        """Declare a stream of the latest values of another one, which queries read under a new name.

        Rows wait in an update queue until what reads them has time: a newer row of a key takes the place of the one
        that waits. The last row of every key always comes out, and rows of a key never change places.

        Args:
            name: what queries call the conflated stream.
            stream: a stream or a view, declared before.
            key: the columns that a row updates the one before it by; the stream's update key unless said otherwise.
            max_staleness: how long what was delivered of a key may be behind what has come: `"2 seconds"`. If that
                cannot be met, the run says so, with the least bound that can.
            policy: which key is next: `in_place` (the one that waits longest), `fifo` (the one whose newest value
                does) or `linecutting` (keys that change rarely go first). Or all rows wait: `append`, or `shedding`,
                which drops some of them at random.
            budget: how many rows go on at a time; by default as many as take about ten milliseconds.
            every: how often a value of a key is wanted at most.
            access: the same of some keys: `{"GOOG": "1 minute", "GM": "1 hour"}`.
            adaptive: whether every row goes on as long as the consumer keeps up, and only the newest when it does not.
            lives: whether rows live until the next of their key, see `latest`.
            windows: of a stream that aggregates read: what waits, and is passed over, are whole windows of theirs.
                `lazy` takes the last that is whole, `eager` the last that has begun, whose rows go on as they come.
            forget_after: how long after the last row of a key it is forgotten, so that keys that come no more cost
                nothing: `"1 day"`. It is kept as long as a row of it waits, or one that is older could still come.
            memory: where rows lie while they wait: on pages that are given back (`on_demand`), or where every key has
                a place for good (`naive`), which is there to be compared with.
        """
        where = f"stream {name}"
        below = _known(self.catalog, name, stream)
        made = conflate_node(
            below, where, key=key, max_staleness=max_staleness, policy=policy, budget=budget, every=every,
            access=access, adaptive=adaptive, lives=lives, windows=windows,
            forget_after=forget_after, memory=memory,
        )  # fmt: skip
        self.catalog.views[name.lower()] = made
        return self

    def latest(self, name: str, stream: str, *, key: Sequence[str] | str | None = None) -> Self:
        """Declare the stream of what is current: a row lives until the next of its key, which queries can rely on.

        A selection of it ends lives as well: once the newest row of a key is left out, nothing is current of the key.
        Rows that are older than one of their key that has come are left out, and counted.

        Args:
            name: what queries call it.
            stream: a stream or a view, declared before.
            key: the columns that a row updates the one before it by; the stream's update key unless said otherwise.
        """
        where = f"stream {name}"
        below = _known(self.catalog, name, stream)
        self.catalog.views[name.lower()] = _lived(below, _key(below, key, where), where)
        return self


def conflate(
    stream: Any,
    *,
    time: str | None = None,
    progress: Any = None,
    schema: str | None = None,
    key: Sequence[str] | str | None = None,
    max_staleness: Length | None = None,
    policy: str = "in_place",
    budget: int | None = None,
    every: Length | None = None,
    access: Mapping[Any, Length] | None = None,
    adaptive: bool = False,
    lives: bool = False,
    forget_after: Length | None = None,
    memory: str = "on_demand",
    path: str | None = None,
) -> Any:
    """The latest values of a stream by key, as fast as its consumer takes them: a query, to be started or read.

    Args:
        stream: a query, or anything that `Flow.stream` reads, such as an iterable of dicts, a source that is polled,
            or a DataFrame of Spark.
        time: of a source that is no query, the column that says which value is newer; `progress` and `schema` are of
            such a source as well, as for `Flow.stream`.
        progress: see there.
        schema: see there.
        key: the columns that a row updates the one before it by; the query's update key unless said otherwise.
        max_staleness: this and what follows is as for `Flow.conflate`.
        policy: see there.
        budget: see there.
        every: see there.
        access: see there.
        adaptive: see there.
        lives: see there.
        forget_after: see there.
        memory: see there.
        path: of a streaming DataFrame, where its run keeps its state, as for `Flow`.

    Returns:
        A query: `start(sink)` hands values on, `run.read(key)` asks for one, `run.progress.queues` says how stale they
        are and how many were superseded.
    """
    query = _query_of(stream, time, progress, schema, path)
    node = conflate_node(
        query.plan, f"query {query.name}", key=key, max_staleness=max_staleness, policy=policy, budget=budget,
        every=every, access=access, adaptive=adaptive, lives=lives,
        forget_after=forget_after, memory=memory,
    )  # fmt: skip
    return query._with_plan(stamped_where_needed(settled(node)))


def _query_of(stream: Any, time: Any, progress: Any, schema: Any, path: Any) -> Any:
    """The query that is conflated."""
    from penstock.flow.flow import Flow
    from penstock.flow.query import Query

    if isinstance(stream, Query):
        if any(given is not None for given in (time, progress, schema, path)):
            raise StreamError(
                "A query has its time already.", where=f"query {stream.name}", got="time, progress, schema or path",
                hint="leave them out; they are of a source that is no query",
            )  # fmt: skip
        return stream
    if time is None:
        raise StreamError("Which value is newer is told by a time.", where="pk.conflate", hint="time='ts'")
    spark = getattr(stream, "sparkSession", None) if hasattr(stream, "mapInArrow") else None
    if spark is None and path is not None:
        raise StreamError(
            "Only a run on Spark has a path.", where="pk.conflate", got=type(stream).__name__, hint="leave path out"
        )
    flow = (Flow() if spark is None else Flow(spark, path=path)).stream(
        "stream", stream, time=time, progress=progress, schema=schema
    )
    return flow.query("SELECT * FROM stream", name="conflated")


def conflate_node(
    below: Node,
    where: str,
    *,
    key: Sequence[str] | str | None = None,
    max_staleness: Length | None = None,
    policy: str = "in_place",
    budget: int | None = None,
    every: Length | None = None,
    access: Mapping[Any, Length] | None = None,
    adaptive: bool = False,
    lives: bool = False,
    windows: str | None = None,
    forget_after: Length | None = None,
    memory: str = "on_demand",
) -> Node:
    """The node of a conflated stream, after all checks."""
    by = _key(below, key, where)
    policy, windows, memory = _name(policy), _name(windows), _name(memory)
    for option, given in (("adaptive", adaptive), ("lives", lives)):
        if not isinstance(given, bool):
            raise StreamError(
                f"{option} is true or false.",
                where=where,
                got=repr(given)[:200],
                hint=f"{option}=True, or leave it out",
            )
    if policy not in QUEUES:
        raise StreamError(
            "There is no such policy.", where=where, got=repr(policy)[:200], hint=closest(str(policy), QUEUES)
        )
    if budget is not None and (not is_whole(budget) or budget < 1):
        raise StreamError("A budget is a number of rows.", where=where, got=repr(budget)[:200], hint="budget=100")
    pace = _pace(access, by, below.schema, where)
    paced = every is not None or bool(pace)
    if (paced or adaptive) and policy not in POLICIES:
        raise StreamError(
            "Only an update queue has a pace for each key, or changes with load.", where=where, got=policy,
            hint=f"one of {', '.join(POLICIES)}",
        )  # fmt: skip
    if adaptive and policy != "in_place":
        raise StreamError(
            "A queue that changes with load serves keys in place.", where=where, got=policy, hint="policy='in_place'"
        )
    if paced and adaptive:
        raise StreamError(
            "Values come at a pace of their own, or all of them as long as that is possible.", where=where,
            got="every or access, and adaptive", hint="leave one of them out",
        )  # fmt: skip
    _check_windows(windows, policy, where, others=paced or adaptive or lives)
    if forget_after is not None and (policy not in POLICIES or adaptive or windows is not None):
        raise StreamError(
            "Only an update queue of rows forgets keys.", where=where, got="forget_after, and all rows or windows wait",
            hint=f"policy one of {', '.join(POLICIES)}, without adaptive and windows",
        )  # fmt: skip
    if memory not in MEMORIES:
        raise StreamError(
            "There is no such memory manager.", where=where, got=repr(memory)[:200], hint=closest(str(memory), MEMORIES)
        )
    made = Conflate(
        below,
        by,
        policy,
        _microseconds("max_staleness", max_staleness, where),
        budget,
        _microseconds("every", every, where),
        pace,
        windows,
        adaptive,
        _microseconds("forget_after", forget_after, where),
        memory,
    )
    return _lived(made, by, where) if lives else made


def _name(given: Any) -> Any:
    """The name of a choice as it is known here, however it is written; what is no name is none of them."""
    if given is None or isinstance(given, str):
        return given and given.replace("-", "_").lower()
    return repr(given)[:200]


def _check_windows(windows: str | None, policy: str, where: str, *, others: bool) -> None:
    """Windows wait in one of two ways, in any order of keys, and in no other way besides."""
    if windows is None:
        return
    if windows not in WINDOWS:
        raise StreamError(
            "There is no such way to queue windows.", where=where, got=repr(windows)[:200],
            hint=closest(str(windows), WINDOWS),
        )  # fmt: skip
    if policy not in POLICIES or others:
        raise StreamError(
            "Windows wait in an update queue, as fast as they are taken.", where=where,
            got=f"windows={windows!r}, and {policy if policy not in POLICIES else 'every, access, adaptive or lives'}",
            hint="leave one of them out",
        )  # fmt: skip


def _known(catalog: Catalog, name: object, stream: object) -> Node:
    """What is conflated, under a name that is free."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise StreamError(
            "A stream's name must be an identifier.", got=repr(name)[:200], hint="letters, digits and underscores"
        )
    catalog.check_free(name)
    below = source_of(catalog, stream) if isinstance(stream, str) else None
    if below is None:
        hint = closest(str(stream), catalog.names)
        raise StreamError("There is no such stream.", where=f"stream {name}", got=str(stream)[:200], hint=hint)
    return below


def _key(below: Node, key: Sequence[str] | str | None, where: str) -> tuple[str, ...]:
    """The update key, in the order of the columns; by fewer columns than the stream's own, values would be lost."""
    schema, own = below.schema, below.properties.update_key
    if schema.lives is not None:
        raise StreamError(
            "Rows with lives of their own are no updates, which live until the next of their key.", where=where,
            got="a stream with lives", hint="conflate it before its rows get lives",
        )  # fmt: skip
    if key is None and own is None:
        raise StreamError("By which columns a row updates the one before is not known.", where=where, hint=KEY)
    found = {*(own or ())} if key is None else {*named_columns("key", key, schema, where)}
    if schema.time in found:
        raise StreamError(
            "The time tells every update apart, so it cannot be in the key.",
            where=where,
            got=str(schema.time),
            hint=KEY,
        )
    if own is not None and not own <= found:
        raise StreamError(
            "By this key, the last values of different update keys would take each other's place.",
            where=where,
            got=f"key ({', '.join(sorted(found))}) of a stream with update key ({', '.join(sorted(own))})",
            hint=f"add {', '.join(sorted(own - found))}",
        )
    return tuple(name for name in schema.names if name in found)


def _lived(node: Node, key: tuple[str, ...], where: str) -> Newest:
    """The rows with lives; whatever chooses among them stands above, or lives would not end where it rejects one."""
    chosen = next((n for n in node.walk() if isinstance(n, Select | Join) or _may_drop(n)), None)
    if chosen is not None:
        raise StreamError(
            "An update that is left out ends the life of the one before, and here it would be left out unseen.",
            where=where,
            got=chosen.label,
            hint="give lives to the stream itself, and choose from that: SELECT … FROM it WHERE …",
        )
    return Newest((node,), key, lives=True)


def _may_drop(node: Node) -> bool:
    return isinstance(node, Lookup) and node.kind != "left"


def _microseconds(option: str, length: Length | None, where: str) -> int | None:
    """A length of time, longer than nothing, by the clock: whatever the stream's own time is counted in."""
    if length is None:
        return None
    try:
        span = parse_span(length) if isinstance(length, str) else None
        if not isinstance(length, dt.timedelta) and not (span is not None and span.is_time):
            raise StreamError("This is no length of time by the clock.", got=repr(length)[:200])
        is_none = length <= dt.timedelta(0) if isinstance(length, dt.timedelta) else span is None or span.amount <= 0
        if is_none:
            raise StreamError("This is not longer than nothing.", got=repr(length)[:200])
        return length_ticks(length, Domain.TIMESTAMP)
    except StreamError as error:
        raise StreamError(
            f"{option}: {error.what}", where=where, got=error.got, hint="'2 seconds' or timedelta(seconds=2)"
        ) from None


def _pace(access: Mapping[Any, Length] | None, key: tuple[str, ...], schema: Schema, where: str) -> Pace:
    """How often values of some keys are wanted, by the values of their columns."""
    if access is None:
        return ()
    if not isinstance(access, Mapping):
        raise StreamError(
            "access says of some keys how often they are wanted.", where=where, got=repr(access)[:200],
            hint="access={'GOOG': '1 minute'}",
        )  # fmt: skip
    found: dict[tuple[object, ...], int] = {}
    for given, length in access.items():
        own = given_key(given, key, schema, f"{where}, access")
        ticks = _microseconds(f"access of {given!r}", length, where)
        if ticks is None:
            raise StreamError("How often is a length of time.", where=where, got=repr(given)[:200], hint="'1 minute'")
        if found.setdefault(canonical_row(own), ticks) != ticks:
            raise StreamError("access says of a key twice how often it is wanted.", where=where, got=repr(given)[:200])
    return tuple(found.items())
