"""Sinks of brokers by their URIs, where only a text can be given: on the command line and in scripts.

`kafka://host:9092,other:9092/topic?key=k&key=window_end` and `redis://host:6379/0?stream=results` (also `rediss://`).
Further settings, such as those of security, are for `pk.kafka_sink` and `pk.redis_sink`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from penstock.errors import StreamError
from penstock.io.kafka import kafka_sink
from penstock.io.redis_streams import redis_sink

SCHEMES = ("kafka", "redis", "rediss")


def by_uri(target: Any) -> Any:
    """The sink that a URI names; anything else as it is."""
    if not isinstance(target, str) or target.partition("://")[0] not in SCHEMES or "://" not in target:
        return target
    parts = urlsplit(target)
    asked = parse_qs(parts.query)
    known, form = ("key", "kafka://host:9092/topic?key=k") if parts.scheme == "kafka" else (
        "stream", "redis://host:6379/0?stream=results",
    )  # fmt: skip
    if set(asked) - {known}:
        raise StreamError("A part of this URI is not known.", got=parts.query[:200], hint=form)
    if parts.scheme == "kafka":
        topic = unquote(parts.path.strip("/"))
        if not parts.netloc or not topic or "/" in topic:
            raise StreamError("This URI names no topic.", got=f"{parts.netloc}{parts.path}"[:200], hint=form)
        return kafka_sink(parts.netloc, topic, key=asked.get("key", ()))
    streams = asked.get("stream", [])
    if len(streams) != 1:
        raise StreamError("This URI names no stream.", got=f"{parts.hostname}{parts.path}"[:200], hint=form)
    return redis_sink(parts._replace(query="").geturl(), streams[0])
