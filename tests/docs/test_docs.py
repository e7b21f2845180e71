"""The docs are true: their Python runs and prints what they show, their SQL binds, their links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.engines.function_list import PAGE as FUNCTIONS
from penstock.engines.function_list import with_list
from penstock.engines.matrix import PAGE, support_matrix
from penstock.testing.generators import SCHEMA
from tests.docs.pages import PAGES, ROOT, Block, blocks, links
from tests.docs.running import plain, run_page

PYTHON = {page: found for page in PAGES if (found := blocks(page, "python"))}
TUTORIAL = ROOT / "docs" / "tutorial.md"
DEFAULTS = """
for key in ("session.timeZone", "shuffle.partitions", "streaming.stateStore.providerClass"):
    print(spark.conf.get(f"spark.sql.{key}"))
"""
SQL = [block for page in PAGES for block in blocks(page, "sql")]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run(found: list[Block]) -> None:
    """Run the blocks of a page one after the other, in one namespace, and compare what they print."""
    namespace: dict[str, Any] = {"__name__": "__docs__"}
    for block in found:
        printed = io.StringIO()
        # The place of the block in the page shows in tracebacks.
        code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None:
            assert plain(printed.getvalue()) == plain(block.output), f"{name_of(block.page)}, line {block.line}"


@pytest.mark.parametrize("page", [p for p in PYTHON if any(not b.needs_spark for b in PYTHON[p])], ids=name_of)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run([block for block in PYTHON[page] if not block.needs_spark])


@pytest.mark.spark
@pytest.mark.parametrize("page", [p for p in PYTHON if any(b.needs_spark for b in PYTHON[p])], ids=name_of)
def test_python_runs_on_spark(page: Path, tmp_path: Path) -> None:
    if page == TUTORIAL:
        run_far_from_utc(page, tmp_path)
    else:
        run_page(PYTHON[page], tmp_path, os.environ)


def run_far_from_utc(page: Path, folder: Path) -> None:
    """As a beginner runs the tutorial: a plain session with Spark's defaults, in New York, gives its answers."""
    assert any("SparkSession.builder.getOrCreate()" in block.text for block in PYTHON[page])
    ours = ("SPARK_", "PYSPARK_", "PENSTOCK_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    settings = run_page(PYTHON[page], folder, {**environment, "TZ": "America/New_York"}, DEFAULTS)
    zone, partitions, provider = plain(settings)
    assert (zone, partitions) == ("America/New_York", "200")
    assert provider.endswith(".HDFSBackedStateStoreProvider")


@pytest.mark.parametrize("block", SQL, ids=lambda b: f"{name_of(b.page)}:{b.line}")
def test_sql_binds(block: Block) -> None:
    flow = pk.Flow()
    for name in ("main", "Control", "Main1", "Main2"):
        flow.stream(name, SCHEMA.empty_table(), time="ts", progress=pk.bounded("5 seconds"))
    for query in block.text.split(";"):
        if query.strip():
            flow.query(query)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = page if not target else (page.parent / target).resolve()
        assert path.exists(), f"{name_of(page)} links to {link}"
        if anchor and path.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [slug(h) for h in headings], f"{name_of(page)} links to {link}"


def slug(heading: str) -> str:
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert str(page.relative_to(ROOT / "docs")) in navigation


def test_support_matrix_is_current() -> None:
    written = (ROOT / PAGE).read_text(encoding="utf-8")
    assert written == support_matrix(), "run: python -m penstock.engines.matrix"


def test_list_of_functions_is_current() -> None:
    written = (ROOT / FUNCTIONS).read_text(encoding="utf-8")
    assert written == with_list(written), "run: python -m penstock.engines.function_list"
