"""Files on an object store as sources and sinks in-process: read as those on a disk are, or refused in our words."""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Callable

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import SourceError

ROWS = [{"t": 1, "v": 2}, {"t": 2, "v": 3}]
CSV = b"t,v\n1,2\n2,3\n"


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return bytes(sink.getvalue().to_pybytes())


KINDS: dict[str, Callable[[], bytes]] = {
    "a.parquet": parquet,
    "a.csv": lambda: CSV,
    "a.csv.gz": lambda: gzip.compress(CSV),
    "a.jsonl": lambda: b'{"t": 1, "v": 2}\n{"t": 2, "v": 3}\n',
}


@pytest.fixture
def folder(s3: str) -> str:
    return f"{s3}/{uuid.uuid4().hex}"


def put(uri: str, data: bytes) -> None:
    bucket, _, key = uri.partition("://")[2].partition("/")
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=data)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("asked", ["{file}", "{folder}", "{folder}/*"])
def test_files_are_read(name: str, asked: str, folder: str) -> None:
    put(f"{folder}/{name}", KINDS[name]())
    source = asked.format(file=f"{folder}/{name}", folder=folder)
    assert pk.Flow().stream("s", source, time="t").query("SELECT t, v FROM s").collect().to_pylist() == ROWS


def test_what_is_not_there_is_told(folder: str) -> None:
    with pytest.raises(SourceError, match="There is no such file") as error:
        pk.Flow().stream("s", f"{folder}/none.csv", time="t")
    assert error.value.got == f"{folder}/none.csv"


def test_results_are_written(folder: str) -> None:
    query = pk.Flow().stream("s", ROWS, time="t").query("SELECT t, v FROM s")
    query.start(f"{folder}/out.parquet").wait()
    again = pk.Flow().stream("s", f"{folder}/out.parquet", time="t").query("SELECT t, v FROM s")
    assert again.collect().to_pylist() == ROWS
