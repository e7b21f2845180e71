"""A queue of windows by configuration: any window mode in any key order on any memory manager."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import StreamError
from penstock.model.schema import Schema
from penstock.operators.queues.choosing import memory_of, order_of
from penstock.operators.queues.extents import Extents
from penstock.operators.queues.lazy_eager import EagerWindows, LazyWindows
from penstock.operators.queues.page_pool import PagePool
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_queue import BLOCK_BYTES, WindowQueue
from penstock.operators.queues.window_shedding import SheddingWindows
from penstock.operators.queues.windowed import WindowedQueue

UPDATE_MODES: dict[str, type[WindowedQueue]] = {"lazy": LazyWindows, "eager": EagerWindows}
MODES = (*UPDATE_MODES, "append", "shed")
"""The last window that is whole, the last that has started, all windows, or windows by lot."""


def window_queue_for(
    schema: Schema,
    key: Sequence[str],
    extents: Extents,
    mode: str = "lazy",
    policy: str = "in-place",
    memory: str = "on-demand",
    pool: PagePool | None = None,
    *,
    promise: Promise = Promise.NOTHING,
    keep: float = 1.0,
    complete_from: int | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> WindowQueue:
    """A queue of the windows of a plan; `keep` is the share that windows by lot keep, `policy` the order of keys."""
    tuples = memory_of(memory, pool)
    if mode in UPDATE_MODES:
        return UPDATE_MODES[mode](
            schema, tuple(key), extents, order_of(policy), tuples,
            promise=promise, complete_from=complete_from, block_bytes=block_bytes,
        )  # fmt: skip
    if mode not in MODES:
        raise StreamError("There is no such window mode.", got=mode, hint=f"one of {', '.join(MODES)}")
    return SheddingWindows(
        schema, tuple(key), extents, tuples,
        keep=keep if mode == "shed" else 1.0, promise=promise, complete_from=complete_from, block_bytes=block_bytes,
    )  # fmt: skip
