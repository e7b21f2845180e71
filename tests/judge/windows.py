"""Rows copied to their windows, by the definition alone.

A window of `[RANGE r, SLIDE s]` with number w ends at origin + (w + 1) * s and holds the rows of the r ticks before its
end. The origin of a window on a time is the epoch unless ORIGIN says otherwise.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from tests.judge.expressions import START
from tests.judge.ours import ARROW_SCHEMA
from tests.judge.queries import Window

LEAD = ("wid", "window_start", "window_end")


def in_windows(rows: list[dict[str, Any]], window: Window) -> pa.Table:
    """Each row once per window that holds it, with the window's number and ends."""
    timed = window.on == "clock"
    bound = pa.timestamp("us", tz="UTC") if timed else pa.int64()
    schema = pa.schema([("wid", pa.int64()), ("window_start", bound), ("window_end", bound), *ARROW_SCHEMA])
    copies = []
    for row in rows:
        time = int(row["clock"].timestamp()) if timed else row["t"]
        origin = window.origin + (int(START.timestamp()) if timed and window.origin else 0)
        near = (time - origin) // window.slide
        for number in range(near - 30, near + 31):  # windows far beyond the row on either side
            end = origin + (number + 1) * window.slide
            if end - window.range <= time < end:
                ends = [end - window.range, end]
                if timed:
                    ends = [dt.datetime.fromtimestamp(e, dt.UTC) for e in ends]
                copies.append({**dict(zip(LEAD, (number, *ends), strict=True)), **row})
    return pa.Table.from_pylist(copies, schema=schema)
