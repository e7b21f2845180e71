"""That files of results were deleted or cut short by somebody is told when a run starts, and stops nothing."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from penstock.errors import StorageWarning
from penstock.storage.home import open_home
from penstock.storage.run_log import RunLog
from tests.storage.conftest import Places
from tests.storage.test_folders import folder, seen, table


def begun(places: Places, **options: Any) -> RunLog:
    home = open_home(places("home"))
    home.lease.release()
    log = RunLog(home, {"results": folder(places("out"), home.run, **options)})
    log.folders["results"].claim()
    return log


def commit(log: RunLog, rows: list[int]) -> None:
    out = log.folders["results"]
    log.home.lease = open_home(log.home.place).lease
    log.commit(log.next_number, {"results": [out.staging.write([table(rows)])]}, frontier=rows[-1], counts={})
    log.home.lease.release()


def warned(places: Places, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begun(places, **options).repair()
    return "\n".join(str(each.message) for each in caught if each.category is StorageWarning)


@pytest.mark.parametrize("compact", [False, True])
def test_files_of_results_that_are_gone_or_cut_are_told(
    compact: bool, places: Places, request: pytest.FixtureRequest
) -> None:
    if compact and request.node.callspec.params["places"] == "s3":
        pytest.skip("folding is the same wherever files are, and takes long over a server")
    log = begun(places, compact=compact)
    for at in range(40 if compact else 4):  # more than are folded at once
        commit(log, [10 * at, 10 * at + 1])
    assert not warned(places, compact=compact)
    out = places("out")
    first, second, *_ = [n for n in out.files() if n.endswith(".parquet") and "empty" not in n]
    whole = (out / second).read()
    (out / first).delete()
    (out / second).write(whole[:-7])
    said = warned(places, compact=compact)
    lost = 66 if compact else 4
    assert f"{out}: files that were written are gone or cut short, and with them {lost} rows" in said
    assert f"{first} is gone ({lost - 2} rows)" in said
    assert f"{second} has {len(whole) - 7} bytes of {len(whole)} (2 rows)" in said
    (out / second).write(whole)
    assert f"and with them {lost - 2} rows" in warned(places, compact=compact)
    commit(begun(places), [500])
    assert 500 in seen(out)


def test_files_of_unknown_size_are_looked_for(places: Places) -> None:
    """As releases wrote them that did not write down sizes."""
    commit(begun(places), [1, 2])
    (name,) = (places("out") / "_penstock" / "log").files()
    entry = places("out") / "_penstock" / "log" / name
    value = entry.read_json()
    del value["entry"]["files"][0]["size"]
    entry.write_json(value)
    (part,) = [n for n in places("out").files() if n.endswith("-0.parquet")]
    (places("out") / part).write((places("out") / part).read() + b"x")
    assert not warned(places)
    (places("out") / part).delete()
    assert f"{part} is gone (2 rows)" in warned(places)
