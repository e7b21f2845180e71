"""Texts as small numbers, all of a batch at once.

Each different text that has come has a code. A text is looked up by a hash of its bytes, and what is found is compared
with it byte by byte. Under a hash there is one text; another one of the same hash goes under the number that comes
after it, if that is free, and so on. Null goes by 0 and an empty text, and is told apart from that too.

Cost: some array operations per eight bytes of the texts that are looked up, whatever is known already. Kept: the bytes,
where each text begins, and what the table of hashes takes.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.operators.aggregates.growing import Growing
from penstock.operators.aggregates.measures import Array
from penstock.operators.aggregates.side_by_side import at_once, is_large, side_by_side
from penstock.operators.aggregates.word_table import SEED, UNKNOWN, WordTable

_LONG = 512
_HALF = 1 << 63
_NEXT = 0x6A09E667F3BCC909
"""What is added to a hash under which there is another text."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


class TextCodes:
    """The codes of texts, or of bytes; null is one of them."""

    def __init__(self, arrow: pa.DataType) -> None:
        """`arrow` is text or binary."""
        self._large = pa.large_binary() if pa.types.is_binary(arrow) else pa.large_string()
        self._table = WordTable(1)
        self._ends, self._bytes = Growing(np.int64), Growing(np.uint8)
        self._ends.append(np.zeros(1, np.int64))
        self._null = UNKNOWN

    def __len__(self) -> int:
        """How many texts have a code."""
        return len(self._ends) - 1

    def fill(self, texts: pa.Array) -> None:
        """Give texts, of which no two are the same, codes in their order; there were none before."""
        large, hashes, nulls = self._hashed(texts)
        self._table.encode([hashes])
        if len(self._table) < len(texts):
            self._table = WordTable(1)
            self._table.fill([_apart(hashes)])
        self._keep(large)
        if texts.null_count:
            self._null = int(np.flatnonzero(nulls)[0])

    def encode(self, texts: pa.Array, *, adds: bool = True) -> Array:
        """The code of every text; one that has none is given one, or is `UNKNOWN`."""
        large, hashes, nulls = self._hashed(texts)
        codes = np.empty(len(texts), np.int64)
        waiting = np.arange(len(texts))
        while len(waiting):
            known = len(self._table)
            found = self._table.encode([hashes if len(waiting) == len(hashes) else hashes[waiting]], adds=adds)
            codes[waiting] = found
            others = self._others(large, nulls, waiting, found, known)
            waiting = others[~self._are(large, nulls, others, codes[others])]
            hashes[waiting] += _NEXT
        return codes

    def _others(self, large: pa.Array, nulls: Array, places: Array, codes: Array, known: int) -> Array:
        """The places of texts whose code was there before them; other texts that have one now are kept."""
        if len(self._table) == known:
            return np.asarray(places[codes != UNKNOWN])
        fresh = np.flatnonzero(codes >= known)[::-1]
        owners = np.empty(len(self._table) - known, np.int64)
        owners[codes[fresh] - known] = places[fresh]  # of several for one code the first, which is the last to be put
        is_other = np.zeros(len(large), np.bool_)
        is_other[places] = True
        is_other[owners] = False
        self._keep(large.take(pa.array(owners)) if len(owners) < len(large) else large)
        null = np.flatnonzero(nulls[owners])
        if len(null):
            self._null = known + int(null[0])
        return np.flatnonzero(is_other)

    def _are(self, large: pa.Array, nulls: Array, places: Array, codes: Array) -> Array:
        """Whether the texts at some places are those of these codes."""
        asked, kept = at_once(
            len(places),
            lambda: large if len(places) == len(large) else large.take(pa.array(places)),
            lambda: self._kept().take(pa.array(codes)),
        )
        same = np.asarray(pc.equal(asked, kept).to_numpy(zero_copy_only=False))
        return np.asarray(same & (nulls[places] == (codes == self._null)))

    def _hashed(self, texts: pa.Array) -> tuple[pa.Array, Array, Array]:
        """The texts with wide offsets, their hashes, and which are null."""
        nulls = np.asarray(texts.is_null().to_numpy(zero_copy_only=False))
        empty: Any = b"" if self._large == pa.large_binary() else ""
        large = (texts.fill_null(empty) if texts.null_count else texts).cast(self._large)
        hashes = hashed(*_parts(large)).view(np.int64)
        hashes[nulls] = 0
        return large, hashes, nulls

    def _keep(self, large: pa.Array) -> None:
        ends, data = _parts(large)
        self._ends.append(ends[1:] + len(self._bytes))
        self._bytes.append(data)

    def _kept(self) -> pa.Array:
        buffers = [None, pa.py_buffer(self._ends.values), pa.py_buffer(self._bytes.values)]
        return pa.Array.from_buffers(self._large, len(self), buffers)

    def take(self, codes: Array) -> pa.Array:
        """The texts of some codes, in Arrow's form with wide offsets."""
        return self._kept().take(pa.array(codes, mask=None if self._null == UNKNOWN else codes == self._null))


def text_hashes(texts: pa.Array) -> Array:
    """A number for each text, or bytes, of which none is null."""
    large = pa.large_binary() if pa.types.is_binary(texts.type) else pa.large_string()
    return hashed(*_parts(texts.cast(large))).view(np.int64)


def _parts(texts: pa.Array) -> tuple[Array, Array]:
    """Where each text begins and the last one ends, and the bytes: of these texts alone, which may be some of many."""
    _, offsets, data = texts.buffers()
    if offsets is None or not len(texts):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if data is None:
        return ends, np.zeros(0, np.uint8)
    return ends - ends[0], np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def _apart(hashes: Array) -> Array:
    """Under what texts go whose hashes are these, one after the other."""
    taken = dict[int, None]()
    for hash_ in hashes.tolist():
        number = hash_
        while number in taken:
            number = (number + _NEXT + _HALF) % (2 * _HALF) - _HALF
        taken[number] = None
    return np.array(list(taken), np.int64)


def hashed(ends: Array, data: Array) -> Array:
    """A number for each text, by its bytes: eight at a time, and those of long ones by themselves."""
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words: Array = np.ndarray(len(data) + 1, "<u8", padded, strides=(1,))
    if not is_large(len(ends)):
        return _mixed(ends, words, data)
    half = len(ends) // 2
    parts = ends[: half + 1], ends[half:]
    return np.concatenate(side_by_side(*(partial(_mixed, part, words, data) for part in parts)))


def _mixed(ends: Array, words: Array, data: Array) -> Array:
    """The same; `words` are the eight bytes from each place on."""
    at, left = ends[:-1], np.diff(ends)
    made = (left.view(np.uint64) + np.uint64(1)) * _MIX ^ SEED
    for long in np.flatnonzero(left > _LONG).tolist():
        digest = blake2b(data[ends[long] : ends[long + 1]].tobytes(), digest_size=8).digest()
        made[long] = int.from_bytes(digest, "little")
    waiting = np.flatnonzero((left > 0) & (left <= _LONG))
    mixed, at, left = (part if len(waiting) == len(made) else part[waiting] for part in (made, at, left))
    while len(waiting):
        mixed ^= words[at] & _MASKS[np.minimum(left, 8)]
        mixed *= _MIX
        mixed ^= mixed >> np.uint64(32)
        longer = np.flatnonzero(left > 8)
        if len(longer) < len(waiting):
            made[waiting] = mixed
            waiting, mixed, at, left = waiting[longer], mixed[longer], at[longer], left[longer]
        at, left = at + 8, left - 8
    return made
