"""Redis streams as sources and sinks, against a server that the tests start."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock as pk
from penstock.errors import CheckpointError, SourceError, StreamError
from penstock.io.infer import parse_schema
from penstock.io.messages import Messages
from penstock.io.redis_streams import RedisReader
from penstock.runtime.kept_positions import positions_in
from tests.flow.test_positions import COLUMNS, TOTAL, by_hand, told
from tests.flow.test_positions import rows as made_rows

NAMES = (f"stream-{number}" for number in itertools.count())


def client(url: str) -> Any:
    return redis.Redis.from_url(url)


def fill(url: str, stream: str, rows: Sequence[dict[str, Any]], begin: int = 1) -> None:
    """Entries with ids of one millisecond after the other."""
    server = client(url)
    for at, row in enumerate(rows, start=begin):
        server.xadd(stream, row, id=f"{at}-0")


def flow_of(source: Any, columns: str = COLUMNS) -> pk.Flow:
    return pk.Flow().stream("s", source, time="t", schema=columns)


def entries(url: str, stream: str) -> list[dict[str, str]]:
    return [{k.decode(): v.decode() for k, v in fields.items()} for _, fields in client(url).xrange(stream)]


def numbers(found: list[dict[str, str]]) -> list[dict[str, int]]:
    return [{k: int(v) for k, v in row.items()} for row in found]


def test_a_stream_is_read_to_its_end(redis_url: str) -> None:
    stream, rows = next(NAMES), made_rows(2500)
    fill(redis_url, stream, rows)
    query = flow_of(pk.redis(redis_url, stream, until="end")).query(TOTAL)
    for _ in range(2):
        assert told(query.collect().to_pylist()) == by_hand(rows)


def test_fields_are_read_as_text_is(redis_url: str) -> None:
    stream = next(NAMES)
    fields = {"t": "1", "flag": "true", "x": "1.5", "at": "2026-01-02T03:04:05Z", "raw": b"\xff", "other": "no column"}
    fill(redis_url, stream, [fields, {"t": "2"}])
    columns = "t bigint, flag boolean, x double, at timestamp, raw binary, redis_id string, redis_timestamp timestamp"
    found = flow_of(pk.redis(redis_url, stream, until="end"), columns).query("SELECT * FROM s").collect().to_pylist()
    assert found[0] == {
        "t": 1,
        "flag": True,
        "x": 1.5,
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "raw": b"\xff",
        "redis_id": "1-0",
        "redis_timestamp": datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
    }
    assert (found[1]["flag"], found[1]["redis_id"]) == (None, "2-0")


def test_what_is_malformed_is_a_dead_letter_with_its_place(redis_url: str) -> None:
    stream, other = next(NAMES), next(NAMES)
    fill(redis_url, stream, [{"t": "1", "k": "0", "v": "5"}, {"t": "noon"}, {"k": "1"}, {"t": b"\xff"}])
    query = flow_of(pk.redis(redis_url, stream, until="end")).query("SELECT t FROM s")
    assert query.collect()["t"].to_pylist() == [1]
    reasons = query.dead_letters["reason"].to_pylist()
    assert sorted(reason[reason.index("(stream") :] for reason in reasons) == [
        f"(stream {stream}, entry {n}-0)" for n in (2, 3, 4)
    ]
    fill(redis_url, other, [{"row": '{"t": 1, "k": 2}'}, {"row": "{"}, {"row": '{"t": "noon"}'}, {"text": "x"}])
    query = flow_of(pk.redis(redis_url, other, json="row", until="end")).query("SELECT t, k FROM s")
    assert query.collect().to_pylist() == [{"t": 1, "k": 2}]
    assert query.counts["dead"] == 3
    assert f"there is no field row (stream {other}, entry 4-0)" in query.dead_letters["reason"].to_pylist()


def reader_of(url: str, stream: str, **options: Any) -> RedisReader:
    return RedisReader(pk.redis(url, stream, **options), parse_schema(COLUMNS, "t", None))


def times(given: Any) -> list[str]:
    assert isinstance(given, Messages)
    return [str(row["t"]) for row in given.rows]


def test_where_a_run_begins_and_ends(redis_url: str) -> None:
    stream = next(NAMES)
    early = reader_of(redis_url, stream)  # there is no such stream yet
    fill(redis_url, stream, made_rows(4))
    ended, latest = reader_of(redis_url, stream, until="end"), reader_of(redis_url, stream, start="latest")
    behind = reader_of(redis_url, stream, start="3-0")
    fill(redis_url, stream, made_rows(1), begin=9)
    assert times(early.poll()) == ["0", "1", "2", "3", "0"]
    assert early.poll() is pk.IDLE
    assert times(ended.poll()) == ["0", "1", "2", "3"]
    assert ended.poll() is pk.END
    assert times(latest.poll()) == ["0"]
    assert times(behind.poll()) == ["3", "0"]
    assert behind.position() == {"stream": stream, "id": "9-0"}
    early.close()
    assert early.poll() is pk.END


def test_an_end_that_was_deleted_is_an_end(redis_url: str) -> None:
    stream = next(NAMES)
    fill(redis_url, stream, made_rows(4))
    client(redis_url).xdel(stream, "4-0", "3-0")
    reader = reader_of(redis_url, stream, until="end")
    assert times(reader.poll()) == ["0", "1"]
    assert reader.poll() is pk.END


def test_results_are_once_in_a_stream_whatever_stops_the_run(redis_url: str, tmp_path: Path) -> None:
    """From one stream to another: what was added after the snapshot is taken out and added anew."""
    stream, out, rows = next(NAMES), next(NAMES), made_rows(95)
    client(redis_url).xadd(out, {"note": "of somebody else"})
    fill(redis_url, stream, rows)
    for at in range(3):
        flow = flow_of(pk.redis(redis_url, stream, until="end"))
        sink = pk.redis_sink(redis_url, out)
        flow.start({flow.query(TOTAL, name="n"): sink}, snapshots=tmp_path / "kept", every="1 hour").wait()
        kept = sorted((tmp_path / "kept").glob("snapshot-*"))
        if at == 0:
            kept[-1].unlink()  # as if it had been killed before: the first one is of its beginning
    found = entries(redis_url, out)
    assert found.pop(0) == {"note": "of somebody else"}
    assert told(numbers(found)) == by_hand(rows)
    assert [int(row["penstock_row"]) for row in found] == list(range(len(found)))


def test_late_rows_and_dead_letters_go_to_streams(redis_url: str) -> None:
    late, dead = next(NAMES), next(NAMES)
    flow = flow_of([{"t": 5, "k": 1, "v": 1}, {"t": 2, "k": 1, "v": 1}, {"t": None, "k": 1, "v": 1}])
    sides = {"late": pk.redis_sink(redis_url, late), "dead_letters": pk.redis_sink(redis_url, dead)}
    flow.query(TOTAL).start(None, **sides).wait()
    assert [json.loads(row["row"])["t"] for row in entries(redis_url, late)] == [2]
    assert [row["reason"] for row in entries(redis_url, dead)] == ["t is null"]


def test_what_a_sink_writes_a_source_reads(redis_url: str) -> None:
    stream = next(NAMES)
    row = {"t": 1, "text": "ä", "x": 0.5, "at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"\x00\xff", "none": None}
    columns = "t bigint, text string, x double, at timestamp, raw binary, none string"
    flow_of([row], columns).query("SELECT * FROM s").start(pk.redis_sink(redis_url, stream)).wait()
    query = flow_of(pk.redis(redis_url, stream, until="end"), columns).query("SELECT * FROM s")
    assert query.collect().to_pylist() == [row]


def test_positions_that_cannot_be_gone_on_from_are_told(redis_url: str, tmp_path: Path) -> None:
    stream, out = next(NAMES), next(NAMES)
    fill(redis_url, stream, made_rows(30))
    flow = flow_of(pk.redis(redis_url, stream, until="end"))
    run = flow.start({flow.query(TOTAL, name="n"): pk.redis_sink(redis_url, out)}, snapshots=tmp_path / "kept")
    run.wait()
    assert positions_in(run.snapshot()) == {"s": {"stream": stream, "id": "30-0"}}
    with pytest.raises(SourceError, match="The snapshot was taken of another source"):
        reader_of(redis_url, "other").seek({"stream": stream, "id": "30-0"})
    client(redis_url).delete(out)
    with pytest.raises(CheckpointError, match="A stream of results has not come as far"):
        flow.start({flow.query(TOTAL, name="n"): pk.redis_sink(redis_url, out)}, snapshots=tmp_path / "kept")
    client(redis_url).delete(stream)
    with pytest.raises(SourceError, match="Entries up to the snapshot are not there any more"):
        reader_of(redis_url, stream).seek({"stream": stream, "id": "30-0"})


def test_entries_that_may_have_been_trimmed_unread_are_warned_of(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = next(NAMES)
    fill(redis_url, stream, made_rows(10))
    client(redis_url).xtrim(stream, maxlen=3, approximate=False)
    reader = reader_of(redis_url, stream)
    reader.seek({"stream": stream, "id": "8-0"})
    assert not caplog.records
    reader.seek({"stream": stream, "id": "4-0"})
    assert "entry 4-0 was trimmed, and others behind it may have been, unread" in caplog.text


def test_servers_and_keys_that_are_wrong_are_told(redis_url: str) -> None:
    with pytest.raises(SourceError, match="Redis did not answer as it should") as unreached:
        flow_of(pk.redis("redis://127.0.0.1:1/0", "s")).query(TOTAL).collect()
    assert unreached.value.got.startswith("ConnectionError")
    name = next(NAMES)
    client(redis_url).set(name, "a text")
    with pytest.raises(SourceError, match="Redis did not answer as it should"):
        flow_of(pk.redis(redis_url, name)).query(TOTAL).collect()
    with pytest.raises(SourceError, match="Redis did not answer as it should"):
        flow_of(made_rows(20)).query(TOTAL).start(pk.redis_sink(redis_url, name)).wait()


@pytest.mark.parametrize("column", ["redis_id bigint", "redis_timestamp bigint", "Redis_Timestamp string"])
def test_columns_of_the_server_that_cannot_be_so_are_told_when_they_are_declared(column: str) -> None:
    for json_field in (None, "row"):
        with pytest.raises(StreamError, match="A column that the broker tells is declared with another type") as wrong:
            flow_of(pk.redis("redis://localhost", "s", json=json_field), f"t bigint, {column}")
        assert (wrong.value.where, wrong.value.got) == ("stream s", column)


def test_columns_of_the_server_are_named_in_any_case(redis_url: str) -> None:
    stream = next(NAMES)
    fill(redis_url, stream, [{"t": "1"}])
    query = flow_of(pk.redis(redis_url, stream, until="end"), "t bigint, Redis_ID string").query("SELECT * FROM s")
    assert query.collect().to_pylist() == [{"t": 1, "Redis_ID": "1-0"}]


def test_what_is_written_wrong_is_told_at_once() -> None:
    for options, message in (
        ({"start": "noon"}, "A stream is read from its earliest or latest entry"),
        ({"until": "noon"}, "A stream is read for good or until its end"),
        ({"json": ""}, "json= names a field"),
    ):
        with pytest.raises(StreamError, match=message):
            pk.redis("redis://localhost", "s", **options)  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="A Redis stream is named by its server and its key"):
        pk.redis_sink("redis://localhost", "")
