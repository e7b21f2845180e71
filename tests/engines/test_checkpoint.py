"""A checkpoint of Spark's of which a part is cut short or gone is refused before Spark sees it, by that part's name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.engines.spark.checkpoint import check_checkpoint
from penstock.errors import CheckpointError
from penstock.storage.files import place_of

CONF = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1794989482314, "conf": {"spark.sql.x": "lz4"}})
SCHEMA = "state/0/_stateSchema/default/0_28cc9650"
OPERATOR = json.dumps(
    {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPandasExec"},
        "stateStoreInfo": [{"storeName": "default", "stateSchemaFilePaths": [f"file:/elsewhere/{SCHEMA}"]}],
    }
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """As Spark 4.3 writes it for a query over a folder of files, another source, and one without a position."""
    files = {"metadata": '{"id":"986ce431-9d5e-4b61-8ca8-b0f5c869a3cc"}'}
    for at in range(11):
        listed = "\n".join(f'{{"path":"file:///in/{n}.json","timestamp":1,"batchId":{n}}}' for n in range(at + 1))
        name = f"{at}.compact" if at == 9 else str(at)
        files |= {
            f"offsets/{at}": f'v1\n{CONF}\n{{"logOffset":{at}}}\n{{"t":{{"0":5}}}}\n-',
            f"commits/{at}": 'v1\n{"nextBatchWatermarkMs":0}',
            f"sources/0/{name}": f"v1\n{listed}",
        }
    files |= {"sources/1/0": "whatever a source keeps", "state/0/_metadata/v2/0": f"v2\n{OPERATOR}"}
    files |= {SCHEMA: '\0\2v3\0\0\0\1\0\5pages\0{"type":"struct","fields":[]}\0\0{"keyStateEncoderType":"Prefix"}'}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "sources/0/.10.crc").write_bytes(b"crc")
    return tmp_path


def test_one_that_is_whole_or_has_not_begun_is_nobodys_concern(checkpoint: Path, tmp_path: Path) -> None:
    check_checkpoint(place_of(checkpoint))
    check_checkpoint(place_of(tmp_path / "none"))


@pytest.mark.parametrize("keep", [0, 0.4, 0.9])
@pytest.mark.parametrize(
    "name", ["metadata", "offsets/10", "offsets/9", "commits/10", "sources/0/10", "state/0/_metadata/v2/0", SCHEMA]
)
def test_a_file_that_was_cut_is_named(name: str, keep: float, checkpoint: Path) -> None:
    whole = (checkpoint / name).read_bytes()
    (checkpoint / name).write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(CheckpointError, match=r"A part of Spark's checkpoint is damaged or gone\.") as told:
        check_checkpoint(place_of(checkpoint))
    assert told.value.where == str(checkpoint / name)
    assert told.value.got.startswith("it is empty" if keep == 0 and name not in ("metadata", SCHEMA) else "")
    assert told.value.hint.startswith("restore the home of the query as a whole, with checkpoint and log")


def test_what_is_gone_is_named(checkpoint: Path) -> None:
    (checkpoint / "metadata").rename(checkpoint / "elsewhere")
    with pytest.raises(CheckpointError, match=r"metadata\n  got:   it is gone"):
        check_checkpoint(place_of(checkpoint))
    (checkpoint / "elsewhere").rename(checkpoint / "metadata")
    (checkpoint / SCHEMA).rename(checkpoint / "elsewhere")
    with pytest.raises(CheckpointError, match=rf"{SCHEMA}\n  got:   it is gone"):
        check_checkpoint(place_of(checkpoint))
    (checkpoint / "elsewhere").rename(checkpoint / SCHEMA)
    (checkpoint / "sources").rename(checkpoint / "elsewhere")
    with pytest.raises(CheckpointError, match=r"sources\n  got:   it is gone, and with it which files were read"):
        check_checkpoint(place_of(checkpoint))


def test_a_source_that_keeps_nothing_has_lost_nothing(checkpoint: Path) -> None:
    (checkpoint / "sources").rename(checkpoint / "elsewhere")
    for at in (9, 10):
        (checkpoint / f"offsets/{at}").write_text(f"v1\n{CONF}\n{at}\n-")
    check_checkpoint(place_of(checkpoint))


@pytest.mark.parametrize(
    ("position", "is_whole"), [('main:{"logOffset":10}', True), ("main:-", True), ('main:{"log', False)]
)
def test_sources_may_go_by_names(position: str, is_whole: bool, checkpoint: Path) -> None:
    (checkpoint / "offsets/10").write_text(f"v2\n{CONF}\n{position}\ncontrol:-")
    if is_whole:
        check_checkpoint(place_of(checkpoint))
    else:
        with pytest.raises(CheckpointError, match=r"it is cut short or damaged"):
            check_checkpoint(place_of(checkpoint))
