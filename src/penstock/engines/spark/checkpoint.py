"""Whether Spark's checkpoint of a query can be read, before Spark is asked to go on from it.

Spark stops at a file of its checkpoint that is cut short or gone with the words of a JSON parser, or with `batch 2
doesn't exist`, and names neither file nor folder. So what it will read first is looked at here: its identity
(`metadata`), the newest two files of `offsets`, the newest of `commits`, of each source that lists files the newest
under `sources`, and what is known of each operator with state, with the schemas of its state. That is a few small
files, however old the run is. That each begins as Spark writes it, and that its lines are whole JSON, is all that is
asked; what other sources keep is theirs. Of the state in `state` Spark itself tells that it cannot read it (`failure`).
"""

from __future__ import annotations

import json
import re

from penstock.errors import CheckpointError
from penstock.storage.files import Place

_VERSION = re.compile(r"v\d+")
_NOTHING = "-"
"""What stands for a source that has no position."""
_NAMED = re.compile(r"^[\w.-]+:(?=[-{\[\"\d])")
"""What a position begins with where sources go by names: `main:{…}`."""
_RESTORE = (
    "restore the home of the query as a whole, with checkpoint and log, from a copy of one moment; or start over with "
    "another flow path and another folder"
)


def check_checkpoint(checkpoint: Place) -> None:
    """Refuse a checkpoint that has begun and of which parts are gone or cut short."""
    offsets = _numbers(checkpoint / "offsets")
    if not offsets:
        return
    identity = checkpoint / "metadata"
    if not identity.exists():
        raise _lost(identity, "it is gone")
    _check_lines(identity, [_text(identity)])
    positions: list[str] = []
    for number in offsets[-2:]:
        positions = _lines(checkpoint / "offsets" / str(number))
    for number in _numbers(checkpoint / "commits")[-1:]:
        _lines(checkpoint / "commits" / str(number))
    _check_sources(checkpoint / "sources", positions)
    _check_operators(checkpoint / "state")


def _check_operators(state: Place) -> None:
    """What Spark knows of each operator with state, by number."""
    for operator in state.folders():
        known = state / operator / "_metadata" / "v2"
        for number in _numbers(known)[-1:]:
            for line in _lines(known / str(number)):
                _check_schemas(state / operator / "_stateSchema", json.loads(line))


def _check_schemas(schemas: Place, known: object) -> None:
    """The files with the schemas of an operator's state, which it is known to have: JSON texts one after the other."""
    stores = known.get("stateStoreInfo", ()) if isinstance(known, dict) else ()
    for store in stores:
        for path in store.get("stateSchemaFilePaths", ()):
            file = schemas / store["storeName"] / path.rpartition("/")[2]
            if not file.exists():
                raise _lost(file, "it is gone")
            found = file.read()
            if not found.endswith(b"}") or found.count(b"{") != found.count(b"}"):
                raise _lost(file, f"it is cut short or damaged: {len(found)} bytes")


def _check_sources(sources: Place, positions: list[str]) -> None:
    """Sources that list files have written down which of them each micro-batch read."""
    listed = [at for at, line in enumerate(positions) if _listed(line)]
    folders = sources.folders()
    if listed and not folders:
        raise _lost(sources, "it is gone, and with it which files were read")
    for name in folders:
        files = sorted((sources / name).files(), key=_order)
        if files and not files[-1].startswith("."):
            _check_listing(sources / name / files[-1])


def _listed(position: str) -> bool:
    """Whether a position is a number of a list of files that has begun."""
    return any(int(found) >= 0 for found in re.findall(r'\\?"logOffset\\?":(-?\d+)', position))


def _check_listing(file: Place) -> None:
    """The list of files of a micro-batch, if it is one: other sources keep what they like."""
    text = _text(file)
    if not text:
        raise _lost(file, "it is empty")
    lines = text.splitlines()
    if _VERSION.fullmatch(lines[0]) and len(lines) > 1 and lines[1].startswith('{"path":'):
        _check_lines(file, [lines[1], lines[-1]])


def _lines(file: Place) -> list[str]:
    """The lines of a file of offsets or commits, but for the version."""
    lines = _text(file).splitlines()
    if len(lines) < 2 or not _VERSION.fullmatch(lines[0]):
        raise _lost(file, f"{' '.join(lines)[:60]!r}" if lines else "it is empty")
    _check_lines(file, lines[1:])
    return lines[1:]


def _check_lines(file: Place, lines: list[str]) -> None:
    for whole in lines:
        line = _NAMED.sub("", whole, count=1)
        if line == _NOTHING:
            continue
        try:
            json.loads(line)
        except ValueError as error:
            raise _lost(file, f"it is cut short or damaged: {error}, in {line[-60:]!r}") from None


def _text(file: Place) -> str:
    return file.read().decode("utf-8", "replace")


def _numbers(folder: Place) -> list[int]:
    return sorted(int(name) for name in folder.files() if name.isdigit())


def _order(name: str) -> tuple[int, str]:
    """Numbered files, and those into which older ones were written together, in order; others before them."""
    number = name.removesuffix(".compact")
    return (int(number), name) if number.isdigit() else (-1, name)


def _lost(file: Place, got: str) -> CheckpointError:
    return CheckpointError("A part of Spark's checkpoint is damaged or gone.", where=str(file), got=got, hint=_RESTORE)
