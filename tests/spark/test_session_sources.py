"""Sources have names from the first checkpoint on, where they can, so that more can be added later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.engines.spark.readers import CONTROL, can_name
from penstock.engines.spark.serving import EVOLUTION, OFFSET_FORMAT
from penstock.errors import CheckpointError
from tests.spark.modes import session_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SQL = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM Main"


def reader(spark: Any, home: Path) -> Any:
    (home / "in").mkdir(exist_ok=True)
    return spark.readStream.schema("t bigint").format("json").option("path", str(home / "in"))


def run(spark: Any, home: Path, source: Any, name: str, times: list[int]) -> Any:
    (home / "in" / f"{name}.json").write_text("\n".join(json.dumps({"t": t}) for t in times))
    flow = pk.Flow(spark, path=str(home / "flow")).stream("Main", source, time="t")
    running = flow.query(SQL, name="q").start(str(home / "out"))
    running.process_available()
    running.stop()
    return running


def kept(home: Path) -> tuple[str, set[str]]:
    """The version of the offset log, and what Spark calls the sources."""
    checkpoint = home / "flow" / "q" / "checkpoint"
    return (checkpoint / "offsets" / "0").read_text().splitlines()[0], {
        p.name for p in (checkpoint / "sources").iterdir()
    }


def test_a_reader_gets_the_name_of_its_stream(spark: Any, tmp_path: Path) -> None:
    if not can_name(spark):
        pytest.skip("through Spark Connect the session itself must ask for names")
    before = {key: spark.conf.get(key, None) for key in (EVOLUTION, OFFSET_FORMAT)}
    run(spark, tmp_path, reader(spark, tmp_path), "0", [1, 12])
    assert kept(tmp_path) == ("v2", {"main", CONTROL})
    assert {key: spark.conf.get(key, None) for key in (EVOLUTION, OFFSET_FORMAT)} == before
    assert run(spark, tmp_path, reader(spark, tmp_path), "1", [25]).progress["read"] == 3, "each file once"
    with pytest.raises(CheckpointError, match=r"(?s)in another way.*goes by names.*reader that is not loaded"):
        run(spark, tmp_path, reader(spark, tmp_path).load(), "2", [31])


def test_a_dataframe_goes_by_its_number(spark: Any, tmp_path: Path) -> None:
    run(spark, tmp_path, reader(spark, tmp_path).load(), "0", [1, 12])
    assert kept(tmp_path) == ("v1", {"0", "1"})
    if can_name(spark):
        with pytest.raises(CheckpointError, match=r"(?s)goes by numbers.*loaded DataFrames, as before"):
            run(spark, tmp_path, reader(spark, tmp_path), "1", [25])
    assert run(spark, tmp_path, reader(spark, tmp_path).load(), "2", [25]).progress["read"] >= 3


def test_a_session_that_asks_for_names_is_served(spark: Any, tmp_path: Path) -> None:
    session = session_beside(spark)
    session.conf.set(EVOLUTION, "true")
    run(session, tmp_path, reader(session, tmp_path).name("mine").load(), "0", [1, 12])
    assert kept(tmp_path) == ("v2", {"mine", CONTROL})


def test_rows_in_memory_may_be_none(spark: Any) -> None:
    columns = pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.string()), ("price", pa.decimal128(10, 2))])
    flow = pk.Flow(spark).stream("s", columns.empty_table(), time="t").table("prices", columns.empty_table())
    found = flow.query("SELECT s.t, s.k, p.price FROM s LEFT JOIN prices p ON p.k = s.k").collect()
    assert found.num_rows == 0
    assert dict(zip(found.schema.names, found.schema.types, strict=True)) == dict(
        zip(columns.names, columns.types, strict=True)
    )
