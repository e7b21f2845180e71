"""`penstock papers stream-mill`: the experiments of the paper on execution, one figure in a file.

Every module of this package whose name begins with `figure_` is an experiment: it has `FIGURE`, the name by which
`--figure` asks for it, `run(events, say)`, which gives the report `stream-mill-FIGURE`, and `plot(rows, path)`. All of
them run flows that were started, on the wall clock; no cost is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from penstock.bench.claims import Report
from penstock.errors import StreamError

Say = Callable[[str], None]
PREFIX = "stream-mill-"


def figures() -> dict[str, ModuleType]:
    """The experiments by name, in the order of the files."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name.startswith("figure_"))
    found = [import_module(f"{__name__}.{name}") for name in names]
    return {module.FIGURE: module for module in found}


def run(events: int | None, figure: str | None, say: Say) -> list[Report]:
    """Run one experiment, or all; `events` says over how many rows each of its runs goes."""
    found = figures()
    if figure is not None and figure not in found:
        raise StreamError("There is no such figure.", got=figure, hint=f"one of {', '.join(found)}")
    return [module.run(events, say) for name, module in found.items() if figure in (name, None)]


def plot(name: str, rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw what a report of this paper has."""
    figures()[name.removeprefix(PREFIX)].plot(rows, folder / f"{name}.svg")
