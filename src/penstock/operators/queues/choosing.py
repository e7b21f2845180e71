"""A queue by configuration: append, append with shedding, or update in one of its key orders, on a memory manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.errors import StreamError
from penstock.model.schema import Schema
from penstock.operators.queues.append_queue import AppendQueue
from penstock.operators.queues.key_orders import Fifo, InPlace
from penstock.operators.queues.linecutting import Linecutting
from penstock.operators.queues.naive_memory import NaiveMemory
from penstock.operators.queues.page_pool import PagePool
from penstock.operators.queues.paging import OnDemandPaging
from penstock.operators.queues.queue import KeyOrder, MemoryManager, Queue
from penstock.operators.queues.shedding import RandomShedding
from penstock.operators.queues.update_queue import UpdateQueue

ORDERS: dict[str, Callable[[], KeyOrder]] = {"fifo": Fifo, "in-place": InPlace, "linecutting": Linecutting}
MEMORIES: dict[str, Callable[[PagePool | None], MemoryManager]] = {"on-demand": OnDemandPaging, "naive": NaiveMemory}
POLICIES = ("append", "shed", *ORDERS)
"""What an arc can be: every row, rows by lot, or the newest of every key in one of the orders."""


def queue_for(
    schema: Schema,
    key: Sequence[str] = (),
    policy: str = "in-place",
    memory: str = "on-demand",
    pool: PagePool | None = None,
) -> Queue:
    """A queue of rows of a schema; a `pool` of pages may serve several."""
    tuples = memory_of(memory, pool)
    if policy in ORDERS:
        return UpdateQueue(schema, tuple(key), ORDERS[policy](), tuples)
    if policy in POLICIES:
        return AppendQueue(schema, tuple(key), tuples, RandomShedding() if policy == "shed" else None)
    raise StreamError("There is no such queue.", got=policy, hint=f"one of {', '.join(POLICIES)}")


def order_of(policy: str) -> KeyOrder:
    """A key order by its name."""
    if policy not in ORDERS:
        raise StreamError("There is no such key order.", got=policy, hint=f"one of {', '.join(ORDERS)}")
    return ORDERS[policy]()


def memory_of(memory: str, pool: PagePool | None = None) -> MemoryManager:
    """A memory manager by its name."""
    if memory not in MEMORIES:
        raise StreamError("There is no such memory manager.", got=memory, hint=f"one of {', '.join(MEMORIES)}")
    return MEMORIES[memory](pool)
