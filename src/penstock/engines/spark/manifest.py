"""What a checkpoint on Spark belongs to, and whether a query may go on from it.

The manifest is written once, before the first micro-batch: the format, the query's description
(`penstock.plan.fingerprint`), the kind and version of every operator's pages, the number of buckets, where the plan is
cut into stages, and whether the checkpoint keeps its sources by name. It is JSON, so that people can read it. A refusal
says which part differs.

It stays as the first start wrote it: operators without state that come later are of no concern to it.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.engines.spark.tables import with_no_rows
from penstock.errors import CheckpointError
from penstock.operators.state import FORMAT_VERSION, check_kind
from penstock.plan.catalog import Catalog
from penstock.plan.fingerprint import check
from penstock.plan.kept import Kept
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder
from penstock.runtime.graph import QueryGraph
from penstock.runtime.taking_up import STATELESS
from penstock.storage.files import Place

MANIFEST = "manifest.json"
STAGES = "stages"


def manifest_of(planned: Physical, catalog: Catalog) -> dict[str, Any]:
    """The manifest of a query, but for the number of its buckets; it goes through JSON unchanged."""
    described = QueryGraph(with_no_rows(planned), Builder(catalog)).describe()
    return {"format": FORMAT_VERSION, **described, STAGES: stages_of(planned)}


def stages_of(planned: Physical) -> list[list[Any]]:
    """Where a plan is cut: below which node, on which input, to which stage, and by how many keys.

    What is below a cut may be worded anew; the state is that of the nodes above it.
    """
    ends: list[tuple[str, int, Physical]] = [("", 0, planned)]
    ends += [(above.identity, port, below) for above in planned.walk() for port, below in enumerate(above.inputs)]
    return [
        [above, port, below.exchange.stage, below.exchange.distribution.kind, len(below.exchange.distribution.keys)]
        for above, port, below in ends
        if below.exchange is not None
    ]


def is_staged_at(home: Place) -> bool:
    """Whether the plan of a home's checkpoint is cut, or may be because there is none."""
    try:
        return bool(_read((home / MANIFEST).read(), str(home)).get(STAGES))
    except FileNotFoundError:
        return True
    except CheckpointError:  # of which `keep_manifest` tells
        return False


def kept_at(home: Place) -> Kept:
    """What the checkpoint of a home has, for the planner; nothing where there is none, or where it cannot be read."""
    saved = _saved_at(home)
    kinds = saved.get("kinds")
    had = {i: own[0] for i, own in kinds.items() if own} if isinstance(kinds, dict) else None
    return Kept.of(had, saved.get("query"))


def buckets_at(home: Place) -> int | None:
    """How many buckets the checkpoint of a home has; None where there is none, or where it cannot be read."""
    buckets = _saved_at(home).get("buckets")
    return buckets if isinstance(buckets, int) else None


def _saved_at(home: Place) -> dict[str, Any]:
    """The manifest of a home, for whoever only looks: nothing where there is none that can be read."""
    try:
        return _read((home / MANIFEST).read(), str(home))
    except (FileNotFoundError, CheckpointError):  # of which `keep_manifest` tells
        return {}


def keep_manifest(
    home: Place,
    now: dict[str, Any],
    asked: int | None,
    *,
    buckets: int,
    named: bool,
    clock: bool = False,
    needs_clock: bool = False,
    sql: str,
) -> dict[str, Any]:
    """The manifest of a home, written if this is its first start; raise if the query cannot go on from there.

    `asked` is the number of buckets that was asked for, `buckets` the one that a first start takes; with `clock` the
    clock is one of the sources then, and with `needs_clock` the query cannot go on from where it is none.
    """
    file = home / MANIFEST
    began = any(n.isdigit() for n in (home / "checkpoint" / "offsets").files())
    if not file.exists():
        if began:
            raise CheckpointError(
                "A checkpoint has lost its manifest, so nobody can tell what it is of.",
                where=str(home),
                got=f"no {MANIFEST}",
                hint=f"put {MANIFEST} back, or start over with another flow path and another folder",
            )
        file.write(
            json.dumps({**now, "buckets": buckets, "named": named, "clock": clock, "sql": sql}, indent=2).encode()
        )
    saved = check_manifest(file.read(), now, str(home), asked)
    _check_clock(home, saved.get("clock", False), clock, named, needs=needs_clock)
    _check_names(home, saved["named"] if "named" in saved else _named_beside(home, named, began=began), named)
    return saved


def _named_beside(home: Place, named: bool, *, began: bool) -> bool:
    """Whether sources go by names, where an earlier release has kept that in a file of its own."""
    file = home / "sources.json"
    try:
        found = file.read_json()
    except FileNotFoundError:
        if not began:
            return named
        raise _lost_names(home, "no sources.json") from None
    if not isinstance(found, dict) or not isinstance(found.get("named"), bool):
        raise _lost_names(home, f"sources.json: {json.dumps(found)[:80]}")
    return bool(found["named"])


def _lost_names(home: Place, got: str) -> CheckpointError:
    return CheckpointError(
        "It is not known how the checkpoint keeps its sources.",
        where=str(home),
        got=got,
        hint="put sources.json back, with named true if every stream was declared over a reader that is not loaded",
    )


def _check_names(home: Place, saved: bool, named: bool) -> None:
    """A checkpoint keeps to names or to numbers: under the other its sources would be read from the beginning."""
    if saved == named:
        return
    had, has = ("names", "numbers") if saved else ("numbers", "names")
    raise CheckpointError(
        "The checkpoint keeps its sources in another way.",
        where=str(home),
        got=f"it goes by {had}, and now they would go by {has}",
        hint="declare every stream over a reader that is not loaded, as before"
        if saved
        else "declare the streams over loaded DataFrames, as before",
    )


def _check_clock(home: Place, saved: bool, clock: bool, named: bool, *, needs: bool) -> None:
    """Sources that go by numbers stay as many as they were, and the clock is one of them."""
    if saved == clock or named or (clock and not needs):
        return
    raise CheckpointError(
        "The checkpoint is of a query for whose silent streams the clock speaks."
        if saved
        else "The checkpoint is of a query for whose silent streams the clock does not speak.",
        where=str(home),
        got=f"{'no' if saved else 'a'} lull or external timestamps",
        hint=f"declare the streams {'with' if saved else 'without'} lull and timestamps, as before; or start anew "
        "under another name or path (streams over readers that are not loaded may change this)",
    )


def check_manifest(text: bytes | str, now: dict[str, Any], where: str, buckets: int | None = None) -> dict[str, Any]:
    """The manifest that was saved, unless the query at hand cannot go on from what it belongs to.

    `buckets` is the number that was asked for, if one was.
    """
    saved = _read(text, where)
    if saved["format"] != now["format"]:
        raise CheckpointError(
            "The checkpoint has another format.",
            where=where,
            got=f"version {saved['format']}",
            hint=f"this release reads version {now['format']}; start anew under another name or path",
        )
    kinds = [*saved["kinds"].items(), *now["kinds"].items()]
    check(saved["query"], now["query"], where, stateless={i for i, had in kinds if had and had[0] == STATELESS})
    for identity, (kind, version) in now["kinds"].items():
        had = saved["kinds"].get(identity)
        if had is None and kind == STATELESS:
            continue  # it was not in the plan then
        if had is None or len(had) != 2:
            raise _damaged(where, f"no kind of operator {identity}")
        check_kind(_Pages(kind, version), had[0], had[1], f"{where}, operator {identity}")
    if saved.get(STAGES, []) != now[STAGES]:
        raise CheckpointError(
            "The checkpoint is of a plan that is cut into other stages.",
            where=where,
            got=f"{len(now[STAGES])} exchanges, of which not all are among its {len(saved.get(STAGES, []))}",
            hint="what was added or taken away makes rows meet elsewhere; start anew under another name or path",
        )
    if buckets is not None and saved["buckets"] not in (buckets, 1):
        raise CheckpointError(
            "The checkpoint was made with another number of buckets.", where=where, got=str(buckets),
            hint=f"leave buckets out, which keeps to {saved['buckets']}; or give this query another name",
        )  # fmt: skip
    return saved


class _Pages:
    """A kind and a version, without an operator."""

    def __init__(self, kind: str, version: int) -> None:
        self.kind, self.version = kind, version

    def to_plain(self, key: str, page: Any) -> Any:
        return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        return data


def _read(text: bytes | str, where: str) -> dict[str, Any]:
    try:
        saved = json.loads(text)
    except ValueError as error:
        raise _damaged(where, str(error)) from None
    if not isinstance(saved, dict) or "format" not in saved:
        raise _damaged(where, "no format in it")
    if saved["format"] == FORMAT_VERSION and not (
        saved.keys() >= {"query", "kinds", "buckets"}
        and isinstance(saved["kinds"], dict)
        and isinstance(saved["buckets"], int)
        and isinstance(saved.get("named", False), bool)
    ):
        raise _damaged(where, "parts are missing")
    return saved


def _damaged(where: str, got: str) -> CheckpointError:
    return CheckpointError(
        "The manifest is damaged or cut short.", where=where, got=got, hint="put an intact copy of manifest.json back"
    )
