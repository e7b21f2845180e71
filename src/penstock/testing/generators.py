"""Packet traces as a network monitor sees them: several links, each with its rate, lulls, delay and disorder.

Made from a seed: the same arguments give the same table. Rows are in order of arrival. A packet of a link arrives
`skew` after its timestamp, plus up to `disorder` more, so within a link no packet comes more than `disorder` behind
the greatest timestamp before it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.time import SECOND, to_ticks

START = dt.datetime(2026, 1, 1, 10, 0, 0, tzinfo=dt.UTC)
LULL_PERIOD = 10.0
"""A link with an idle fraction falls silent once in each of these many seconds."""
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("link", pa.string()),
        ("srcIP", pa.string()),
        ("destIP", pa.string()),
        ("srcPort", pa.int32()),
        ("destPort", pa.int32()),
        ("len", pa.int32()),
        ("length", pa.int32()),
    ]
)
"""The columns of a trace; `len` and `length` are the same, since queries in the literature use either name."""

_PORTS = np.array([80, 443, 53, 22, 25, 8080], dtype=np.int32)
_LENGTHS = np.array([40, 576, 1500], dtype=np.int32)


@dataclass(frozen=True)
class Burst:
    """For a while the rate of a link is multiplied."""

    start: float
    """Seconds after the start of the trace."""
    seconds: float
    factor: float


@dataclass(frozen=True)
class Link:
    """How packets come over a link; lengths of time are in seconds."""

    rate: float
    """Packets per second while it is not idle."""
    idle: float = 0.0
    """The fraction of time in which nothing is sent."""
    skew: float = 0.0
    """How long after its timestamp a packet arrives at the earliest."""
    disorder: float = 0.0
    """How much longer it may take."""
    bursts: tuple[Burst, ...] = ()

    def __post_init__(self) -> None:
        """Rates and lengths are not negative, and no link is idle all the time."""
        if min(self.rate, self.skew, self.disorder) < 0 or not 0 <= self.idle < 1:
            raise StreamError(
                "A link's numbers are out of range.", got=str(self), hint="rate, skew, disorder >= 0 and 0 <= idle < 1"
            )


def packets(
    links: Mapping[str, Link],
    seconds: float,
    seed: int,
    *,
    hosts: int = 1000,
    key_skew: float = 1.1,
    start: dt.datetime = START,
) -> pa.Table:
    """The packets of all links in order of arrival.

    Args:
        links: The links by name.
        seconds: How long packets are sent.
        seed: Makes the trace.
        hosts: How many source addresses there are, and as many destinations.
        key_skew: The exponent of the Zipf law of source addresses; 0 makes them uniform. Destinations are uniform.
        start: The time at which sending starts; naive is UTC.

    Returns:
        A table with the columns of `SCHEMA`.
    """
    parts = [_sent(link, seconds, np.random.default_rng([seed, i])) for i, link in enumerate(links.values())]
    sizes = [len(ts) for ts, _ in parts]
    total = sum(sizes)
    names = np.repeat(np.array(list(links), dtype=object), sizes)
    ts = np.concatenate([ts for ts, _ in parts]) if parts else np.empty(0, np.int64)
    arrival = np.concatenate([at for _, at in parts]) if parts else np.empty(0, np.int64)
    order = np.argsort(arrival, kind="stable")

    rng = np.random.default_rng([seed, len(parts)])
    source = np.searchsorted(_cumulative_zipf(hosts, key_skew), rng.random(total), side="right")
    destination = rng.integers(0, hosts, total)
    length = rng.choice(_LENGTHS, total, p=[0.5, 0.2, 0.3]).astype(np.int32)
    columns = [
        pa.array(ts[order] + to_ticks(start), pa.timestamp("us", tz="UTC")),
        pa.array(names[order], pa.string()),
        pa.array([_address(10, n) for n in source], pa.string()),
        pa.array([_address(172, n) for n in destination], pa.string()),
        pa.array(rng.integers(1024, 65536, total).astype(np.int32)),
        pa.array(rng.choice(_PORTS, total)),
        pa.array(length),
        pa.array(length),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


Ticks = npt.NDArray[np.int64]


def _sent(link: Link, seconds: float, rng: np.random.Generator) -> tuple[Ticks, Ticks]:
    """When packets of a link are sent and when they arrive, in ticks after the start."""
    times = _poisson(link.rate, 0.0, seconds, rng)
    for burst in link.bursts:
        end = min(burst.start + burst.seconds, seconds)
        more = _poisson(link.rate * max(burst.factor - 1.0, 0.0), burst.start, end, rng)
        times = np.concatenate([times, more])
    if link.idle:
        phase = rng.random() * LULL_PERIOD
        times = times[(times + phase) % LULL_PERIOD >= link.idle * LULL_PERIOD]
    sent = np.sort((times * SECOND).astype(np.int64))
    delay = link.skew + rng.random(len(sent)) * link.disorder
    return sent, sent + (delay * SECOND).astype(np.int64)


def _poisson(rate: float, start: float, end: float, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Times of a Poisson process of `rate` a second."""
    if end <= start:
        return np.empty(0, np.float64)
    return rng.uniform(start, end, rng.poisson(rate * (end - start)))


def _cumulative_zipf(n: int, exponent: float) -> npt.NDArray[np.float64]:
    """The distribution function of Zipf's law over `n` ranks.

    Its last step is left out, so that no draw falls beyond it.
    """
    weights = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    return np.cumsum(weights / weights.sum())[:-1]


def _address(network: int, host: int) -> str:
    return f"{network}.{host >> 16 & 255}.{host >> 8 & 255}.{host & 255}"
