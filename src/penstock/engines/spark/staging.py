"""Outputs where they are made: a bucket's rows of a kind go back to the driver if they are few, and to a file if not.

So what is written is written once, by whoever made it (where a plan has no state, by the tasks that read), and passes
through nobody else; and the number of files does not
grow with the number of buckets where there is little to write: the driver writes the rows of all buckets into one. A
file is in the staging folder until the record of the micro-batch names it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

import pyarrow as pa

from penstock.engines.spark.wire import Packet, output, pack, unpack
from penstock.storage.folders import Staging
from penstock.storage.log import DataFile

INLINE = 1 << 18
"""Bytes of Arrow up to which a bucket gives its rows to the driver."""
FILE = "file of "


def staged(packets: Iterable[Packet], folders: Mapping[str, Staging]) -> Iterator[Packet]:
    """Outputs of a bucket, of which those kinds that have a folder are staged there."""
    held: dict[str, list[pa.Table]] = defaultdict(list)
    for packet in packets:
        if packet.kind in folders:
            held[packet.kind].append(unpack(packet.body))
        else:
            yield packet
    for kind, tables in held.items():
        yield staged_rows(kind, tables, folders)


def staged_rows(kind: str, tables: Sequence[pa.Table], folders: Mapping[str, Staging]) -> Packet:
    """Rows of one kind as an output: a file, if there are many and the kind has a folder."""
    if kind not in folders or sum(t.nbytes for t in tables) <= INLINE:
        return output(kind, pack(pa.concat_tables(tables)))
    return output(FILE + kind, json.dumps(asdict(folders[kind].write(tables))).encode())


def staged_file(kind: str, body: bytes) -> tuple[str, DataFile] | None:
    """The kind of rows of a file that was staged, and the file, if that is what an output tells of."""
    return (kind.removeprefix(FILE), DataFile(**json.loads(body))) if kind.startswith(FILE) else None
