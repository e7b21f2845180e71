"""Pages: what is written is read, locations never overlap, accounts are exact, empty pages go back to the system."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StreamError
from penstock.model.plain import decode, encode
from penstock.operators.queues.naive_memory import NaiveMemory
from penstock.operators.queues.page_pool import PagePool, rounded
from penstock.operators.queues.paging import OnDemandPaging, PagedMemory
from tests.profiles import examples

SIZES = [1, 16, 100, 900, 5000]
"""On pages of 4096 bytes there are 4 locations of 900, and 5000 needs a page of its own."""
steps = st.one_of(
    st.tuples(st.just("allocate"), st.integers(0, 5), st.sampled_from(SIZES)),
    st.tuples(st.just("many"), st.lists(st.tuples(st.integers(0, 5), st.sampled_from(SIZES)), max_size=12)),
    st.tuples(st.just("free"), st.integers(0, 99)),
    st.tuples(st.just("free many"), st.integers(0, 99), st.integers(1, 12)),
    st.tuples(st.just("overwrite"), st.integers(0, 99), st.sampled_from(SIZES)),
    st.tuples(st.just("again")),
)


def small(kind: type[PagedMemory]) -> PagedMemory:
    return kind(PagePool(mmap.PAGESIZE))


@pytest.mark.parametrize("kind", [OnDemandPaging, NaiveMemory])
@examples(30)
@given(script=st.lists(steps, max_size=30))
def test_locations_hold_what_was_written(kind: type[PagedMemory], script: list[tuple[Any, ...]]) -> None:
    memory = small(kind)
    held: dict[int, tuple[int, bytes]] = {}
    """By location: whose it is, and what was written."""
    mark = 0

    def write(owner: int, location: int, size: int) -> None:
        nonlocal mark
        assert location not in held
        mark += 1
        content = (mark.to_bytes(2, "little") * size)[:size]
        assert len(memory.view(location)) >= size
        memory.view(location)[:size] = content
        held[location] = (owner, content)

    for name, *given_ in script:
        some = list(held)
        if name == "allocate":
            write(given_[0], memory.allocate(*given_), given_[1])
        elif name == "many":
            owners, sizes = [o for o, _ in given_[0]], [s for _, s in given_[0]]
            found = memory.allocate_many(np.array(owners, np.int64), np.array(sizes, np.int64))
            for owner, location, size in zip(owners, found.tolist(), sizes, strict=True):
                write(owner, location, size)
        elif name == "again":
            plain = memory.to_plain()
            memory = small(kind)
            memory.from_plain(decode(encode(plain)), 1)
            assert encode(memory.to_plain()) == encode(plain)
        elif some and name == "free":
            location = some[given_[0] % len(some)]
            memory.free(held.pop(location)[0], location)
        elif some and name == "free many":
            chosen = some[given_[0] % len(some) :][: given_[1]]
            memory.free_many(np.array([held.pop(at)[0] for at in chosen]), np.array(chosen))
        elif some and name == "overwrite":
            location = some[given_[0] % len(some)]
            owner, _ = held.pop(location)
            write(owner, memory.overwrite(owner, location, given_[1]), given_[1])
        _check(memory, held)


def _check(memory: PagedMemory, held: dict[int, tuple[int, bytes]]) -> None:
    for location, (_, content) in held.items():
        assert bytes(memory.view(location)[: len(content)]) == content
    usage, pages = memory.usage(0), [page for page in memory._pages if page is not None]
    assert usage.used == len(held)
    assert usage.used_bytes == sum(len(memory.view(at)) for at in held)
    assert usage.pages == len(pages) == memory.pool.pages
    assert usage.bytes == sum(len(page.view) for page in pages) == memory.pool.bytes
    assert usage.locations == sum(page.slots - len(page.free) for page in pages)
    assert {n for found in memory._with_room.values() for n in found} == {p.number for p in pages if p.free}
    if isinstance(memory, OnDemandPaging):
        assert usage.locations == usage.used
        assert not any(page.is_empty for page in pages)


def test_freed_locations_are_used_before_new_pages() -> None:
    memory = small(OnDemandPaging)
    found = [memory.allocate(0, 1000) for _ in range(12)]
    assert memory.usage(0).pages == 3
    for location in found[::2]:
        memory.free(0, location)
    again = {memory.allocate(0, 1000) for _ in range(6)}
    assert again == set(found[::2])
    assert memory.usage(0).pages == 3


def test_bytes_of_several_sizes_are_written_and_read_at_once() -> None:
    memory = small(OnDemandPaging)
    sizes = np.array([16, 96, 16, 4096, 5000, 96] * 30)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    data = np.random.default_rng(5).integers(0, 256, int(starts[-1])).astype(np.uint8)
    locations = memory.allocate_many(np.arange(len(sizes)), sizes)
    memory.write_many(locations, data, starts)
    order = np.random.default_rng(6).permutation(len(sizes))
    read, at = memory.read_many(locations[order])
    for place, which in enumerate(order.tolist()):
        mine = read[at[place] : at[place + 1]][: sizes[which]]
        assert mine.tobytes() == data[starts[which] : starts[which + 1]].tobytes()


def test_sizes_of_locations_waste_at_most_a_quarter() -> None:
    for size in range(1, 3000):
        assert rounded(size) >= size
        assert rounded(size) % 16 == 0
        assert rounded(size) <= max(size + 15, size * 1.25)
        assert rounded(rounded(size)) == rounded(size)


def test_pages_that_are_freed_lower_what_the_process_holds() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    memory = OnDemandPaging()
    before = resident()
    owners = np.arange(60_000)
    locations = memory.allocate_many(owners, np.full(60_000, 512))
    memory.write_many(locations, np.ones(60_000 * 512, np.uint8), np.arange(60_001) * 512)
    held = memory.usage(0).bytes
    assert held >= 60_000 * 512
    assert resident() - before > 0.8 * held
    memory.free_many(owners, locations)
    assert memory.usage(0).bytes == 0
    assert resident() - before < 0.2 * held


def test_a_page_is_made_of_whole_pages_of_the_system() -> None:
    with pytest.raises(StreamError, match=r"(?s)whole pages of the operating system.*page_bytes=1000"):
        PagePool(1000)
    with pytest.raises(StreamError, match="whole pages"):
        PagePool(1 << 21)
