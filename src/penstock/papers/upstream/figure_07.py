"""Figure 7: append queues, random shedding and update queues as load grows, of one key and of ten (section 5.2).

The same arrivals as in Figure 5. Random shedding (AQ-RLS) drops so many rows that what is left takes a part of the
consumer's time, its headroom; since a queue that is fed to the brim grows by chance, and one that is fed little wastes
time, it is run with several and the best of them, chosen for each load afterwards, is what update queues are held
against. That ratio was set before anything was measured: `BARS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.operators.queues.append_queue import AppendQueue
from penstock.operators.queues.choosing import queue_for
from penstock.operators.queues.queue import Queue
from penstock.operators.queues.shedding import RandomShedding
from penstock.papers.plots import line_chart
from penstock.papers.upstream.simulation import KEY, SCHEMA, simulate, steady

FIGURE = "7"
SERVICES = 2000
LOADS = range(1, 11)
KEYS = (1, 10)
HEADROOMS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
BARS = {2: 1.5, 5: 2.0, 10: 2.0}
"""By load: how many times staler than under IN-PLACE the application must at least be under random shedding."""
AQ, RLS, FIFO, IN_PLACE = "append", "random shedding", "update, FIFO", "update, IN-PLACE"


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every queue at every load, with one key and with ten; `events` are rows served."""
    services = events or SERVICES
    stale: dict[tuple[int, int, str], float] = {}
    rows: list[dict[str, Any]] = []
    for keys in KEYS:
        for load in LOADS:
            for name, value in _at(load, keys, services).items():
                stale[keys, load, name] = value
            told = {name: round(stale[keys, load, name], 3) for name in (AQ, RLS, FIFO, IN_PLACE)}
            rows.append({"keys": keys, "load": load, **told})
        say(f"figure 7: {keys} keys")
    growth = _growth(services)
    rows += [
        {"keys": 10, "load": load, "append, a run twice as long": round(ratio, 3)} for load, ratio in growth.items()
    ]
    return Report("upstream-7", rows, _claims(stale, growth))


def _at(load: int, keys: int, services: int) -> dict[str, float]:
    """Application staleness of every queue under the same arrivals."""
    arrivals = steady(load, keys, services)

    def of(queue: Queue) -> float:
        return simulate(queue, arrivals).application

    shedding = [AppendQueue(SCHEMA, KEY, shedding=RandomShedding(headroom=part)) for part in HEADROOMS]
    return {
        AQ: of(queue_for(SCHEMA, KEY, "append")),
        RLS: min(of(queue) for queue in shedding),
        FIFO: of(queue_for(SCHEMA, KEY, "fifo")),
        IN_PLACE: of(queue_for(SCHEMA, KEY, "in-place")),
    }


def _growth(services: int) -> dict[int, float]:
    """By load: how many times staler an append queue is on average over a run that is twice as long."""
    found = {}
    for load in BARS:
        short, long = (
            simulate(queue_for(SCHEMA, KEY, "append"), steady(load, 10, part)).application
            for part in (services // 2, services)
        )
        found[load] = long / short
    return found


def _claims(stale: dict[tuple[int, int, str], float], growth: dict[int, float]) -> list[Claim]:
    cases = [(keys, load) for keys in KEYS for load in LOADS]
    worst = max(stale[keys, load, IN_PLACE] / stale[keys, load, FIFO] for keys, load in cases)
    claims = [Claim("IN-PLACE against FIFO, at the worst load", worst, 1.0, "lower")]
    for keys in KEYS:
        for load, bar in BARS.items():
            ratio = stale[keys, load, RLS] / stale[keys, load, IN_PLACE]
            name = f"random shedding against IN-PLACE, {keys} key{'s' * (keys > 1)}, load {load}"
            claims.append(Claim(name, ratio, bar, "higher"))
    claims.append(Claim("append: a run twice as long, at the worst load", min(growth.values()), 1.8, "higher"))
    return claims


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Staleness against load, a chart for one key and one for ten."""
    charts = {}
    for keys in KEYS:
        mine = [row for row in rows if row["keys"] == keys and AQ in row]
        names = (AQ, RLS, FIFO, IN_PLACE)
        charts[f"{keys} key{'s' * (keys > 1)}"] = {name: [(row["load"], row[name]) for row in mine] for name in names}
    line_chart(charts, "load", "application staleness, in costs of a row", folder / "upstream-7.svg", is_log=True)
