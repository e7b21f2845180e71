"""`penstock papers genmig`: the experiments of the paper on plan migration, one figure in a file.

Every module of this package whose name begins with `figure_` is an experiment: it has `FIGURE`, the name by which
`--figure` asks for it, `run(events, say)`, which gives the report `genmig-FIGURE`, and may have `plot(rows, path)`.
Nothing is simulated: plans are of the operators that the tests judge, and what is timed is timed by the clock.
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
PREFIX = "genmig-"


def figures() -> dict[str, ModuleType]:
    """The experiments by name, in the order of the files."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name.startswith("figure_"))
    found = [import_module(f"{__name__}.{name}") for name in names]
    return {module.FIGURE: module for module in found}


def run(events: int | None, figure: str | None, say: Say) -> list[Report]:
    """Run one experiment, or all; `events` says how many values each stream has."""
    found = figures()
    if figure is not None and figure not in found:
        raise StreamError("There is no such figure.", got=figure, hint=f"one of {', '.join(found)}")
    return [module.run(events, say) for name, module in found.items() if figure in (name, None)]


def plot(name: str, rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw what a report of this paper has, if its experiment knows how."""
    draw = getattr(figures()[name.removeprefix(PREFIX)], "plot", None)
    if draw is not None:
        draw(rows, folder / f"{name}.svg")
