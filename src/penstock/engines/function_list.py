"""The list of functions in the docs, made from the records that queries are bound by and the tables that they run by.

`python -m penstock.engines.function_list` writes it into `docs/concepts/functions.md`, between two marks. A test
compares the two.
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.engines.spark.scalar_columns import FORMS
from penstock.engines.spark.utc import PARTS
from penstock.plan.functions import LAZY, STRICT
from penstock.plan.nested_functions import MAKERS
from penstock.plan.scalars import CHOICE, NESTED, NUMBERS, SCALARS, TEXT, TIMES, Scalar
from penstock.runtime.column_nested import NESTED_FORMS
from penstock.runtime.column_scalars import COLUMN_FORMS

PAGE = "docs/concepts/functions.md"
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->\n"
_NAMES = {"regexp_like": "rlike"}
_TITLES = {
    TEXT: "Text",
    NUMBERS: "Numbers",
    TIMES: "Times and dates",
    NESTED: "Arrays, maps and structs",
    CHOICE: "Choice",
}
_IN_PYTHON = MAKERS.keys() - {"array", "struct"}


def function_list() -> str:
    """A table for each family."""
    parts: list[str] = []
    for family, title in _TITLES.items():
        parts += [f"\n### {title}\n\n", "| function | also called | in-process | on Spark |\n|---|---|---|---|\n"]
        parts += [_line(scalar) for scalar in SCALARS if scalar.family == family]
    return "".join(parts) + "\n"


def _line(scalar: Scalar) -> str:
    name = _NAMES.get(scalar.called) or scalar.name or scalar.called
    here = there = "—"
    if name in STRICT or name in LAZY:
        here = "by columns" if name in COLUMN_FORMS or name in NESTED_FORMS else "by rows"
        native = name in FORMS or name in PARTS or name in LAZY
        there = "native" if native and name not in _IN_PYTHON else "in Python"
    also = ", ".join(f"`{other}`" for other in scalar.also)
    return f"| `{scalar.written}` | {also} | {here} | {there} |\n"


def with_list(page: str) -> str:
    """A page with the list as it is now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{function_list()}{END}{tail}"


if __name__ == "__main__":
    path = Path(sys.argv[1] if len(sys.argv) > 1 else PAGE)
    path.write_text(with_list(path.read_text(encoding="utf-8")), encoding="utf-8")
