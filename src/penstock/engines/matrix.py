"""The support matrix of the docs, made from the engines' own tables.

`python -m penstock.engines.matrix` writes it to `docs/support.md`, or to the path that it is given. A test compares the
two, so the page cannot say what the engines do not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from penstock.engines.base import FEATURES, Support
from penstock.engines.local.support import SUPPORT
from penstock.engines.spark.support import BATCH, STREAMING

PAGE = "docs/support.md"
ENGINES: Mapping[str, Mapping[str, Support]] = {
    "in-process": SUPPORT,
    "Spark, batch": BATCH,
    "Spark, streaming": STREAMING,
}
_HEAD = """\
# What runs where

A query that asks for what its engine has not is refused before anything runs, with the advice given here.
This page is written by `python -m penstock.engines.matrix` from the tables that the engines check queries with.
"""


def support_matrix() -> str:
    """One row per feature, one column per engine, as a page of Markdown."""
    lines = [_HEAD, _row("feature", "in SQL or Python", *ENGINES), _row(*["---"] * (len(ENGINES) + 2))]
    for feature, meaning in FEATURES.items():
        cells = [_cell(table.get(feature)) for table in ENGINES.values()]
        lines.append(_row(_plain(feature), _plain(meaning), *cells))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(support: Support | None) -> str:
    if support is None:
        return "no"
    return f"{'yes' if support.supported else '**no**'}: {_plain(support.how)}"


def _plain(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else PAGE)
    path.write_text(support_matrix(), encoding="utf-8")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
