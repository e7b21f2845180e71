"""Experiments of a paper that has one module for each figure: found, run and drawn by the names of the files.

A module `figure_…` has its name (`FIGURE`), `run(events, say)`, and `plot(rows, path)` if it has something to draw.
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


class Experiments:
    """Those of one package."""

    def __init__(self, package: str, path: Sequence[str], prefix: str) -> None:
        """`prefix` is what the names of its reports begin with."""
        self.package, self.path, self.prefix = package, path, prefix

    def figures(self) -> dict[str, ModuleType]:
        """The experiments by name, in the order of the files."""
        names = sorted(module.name for module in iter_modules(self.path) if module.name.startswith("figure_"))
        found = [import_module(f"{self.package}.{name}") for name in names]
        return {module.FIGURE: module for module in found}

    def run(self, events: int | None, figure: str | None, say: Say) -> list[Report]:
        """Run one experiment, or all; `events` says how large each is."""
        found = self.figures()
        if figure is not None and figure not in found:
            raise StreamError("There is no such figure.", got=figure, hint=f"one of {', '.join(found)}")
        return [module.run(events, say) for name, module in found.items() if figure in (name, None)]

    def plot(self, name: str, rows: Sequence[dict[str, Any]], folder: Path) -> None:
        """Draw what a report has, if its experiment knows how."""
        draw = getattr(self.figures()[name.removeprefix(self.prefix)], "plot", None)
        if draw is not None:
            draw(rows, folder / f"{name}.svg")
