"""Options of streams and sinks in scripts that say what is read and written as it comes: `follow`, `tcp://…`, `listen`.

A script is only checked when it is made, so a port is taken when a run begins and not before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import StreamError
from penstock.io.connections import listen, socket
from penstock.io.followed import follow
from penstock.io.published import Port

ADDRESS = re.compile(r"tcp://(?P<host>[^/:\[\]]+|\[[^\]]+\]):(?P<port>\d+)/?")
SOURCE_OPTIONS = ("follow", "start", "listen", "header", "max_line", "reconnect", "attempts")
SINK_OPTIONS = ("max_held",)


def is_address(text: str) -> bool:
    """Whether a source or a sink is a port."""
    return text.startswith("tcp://")


def address_of(text: str) -> tuple[str, int]:
    """The host and the port."""
    found = ADDRESS.fullmatch(text)
    if found is None:
        raise StreamError("An address is tcp://host:port.", got=text[:200], hint="'tcp://localhost:9000'")
    return found["host"].strip("[]"), int(found["port"])


def is_live(options: Mapping[str, str]) -> bool:
    """Whether a stream is read as it comes."""
    return is_address(options.get("source", "")) or any(name in options for name in SOURCE_OPTIONS)


def live_source(options: Mapping[str, str]) -> Any:
    """What a stream reads that goes on."""
    source = options.get("source", "")
    given: dict[str, Any] = {n: options[n] for n in ("format", "delimiter") if n in options}
    if "max_line" in options:
        given["max_line"] = _whole(options, "max_line")
    if not is_address(source):
        _only(options, ("follow", "start", "max_line"), "of a file that is followed")
        if not _truth(options, "follow"):
            raise StreamError("A file is followed, or read to its end.", got="follow = false", hint="leave it out")
        if "start" in options:
            given["start"] = options["start"]
        return follow(source, **given)
    host, port = address_of(source)
    given["header"] = _truth(options, "header")
    if _truth(options, "listen"):
        _only(options, ("listen", "header", "max_line"), "of a port that is listened at")
        return listen(port, host, **given, at_once=False)
    _only(options, ("listen", "header", "max_line", "reconnect", "attempts"), "of a connection")
    if "attempts" in options:
        given["attempts"] = _whole(options, "attempts")
    return socket(host, port, **given, reconnect=_truth(options, "reconnect", default=True))


def live_sink(path: str, options: Mapping[str, str]) -> Port:
    """Where results are given to whoever connects."""
    host, port = address_of(path)
    return Port(host, port, _whole(options, "max_held") if "max_held" in options else None)


def _only(options: Mapping[str, str], known: tuple[str, ...], what: str) -> None:
    """An option that says nothing would be passed over."""
    unknown = [name for name in SOURCE_OPTIONS if name in options and name not in known]
    if unknown:
        raise StreamError("An option says nothing here.", got=unknown[0], hint=f"{what}: {', '.join(known)}")


def _truth(options: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise StreamError("This is true or false.", got=f"{name} = {text}"[:200])
    return text == "true"


def _whole(options: Mapping[str, str], name: str) -> int:
    if not options[name].isdecimal():
        raise StreamError("A number is expected here.", got=f"{name} = {options[name]}"[:200])
    return int(options[name])
