"""`penstock papers upstream`: the experiments of the paper on update queues, one figure in a file.

Every module of this package whose name begins with `figure_` is an experiment: it has `FIGURE`, the name by which
`--figure` asks for it, `run(events, say)`, which gives the report `upstream-FIGURE`, and may have `plot(rows, folder)`.
Time is simulated: arrivals come when the experiment says, and what is dequeued takes as long as the experiment says, so
nothing depends on the machine. With the clock `wall` the paper's figures are those of runs in real time (`wall`).
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
from penstock.papers.upstream.wall import FIGURES, PLOTS

Say = Callable[[str], None]
CLOCKS = ("simulated", "wall")
WALL = "-wall"


def figures() -> dict[str, ModuleType]:
    """The experiments by name, in the order of the files."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name.startswith("figure_"))
    found = [import_module(f"{__name__}.{name}") for name in names]
    return {module.FIGURE: module for module in found}


def run(events: int | None, figure: str | None, say: Say, clock: str = CLOCKS[0]) -> list[Report]:
    """Run one experiment, or all; `events` says over how many arrivals, for those that are asked."""
    if clock not in CLOCKS:
        raise StreamError("There is no such clock.", got=clock, hint=f"one of {', '.join(CLOCKS)}")
    found: dict[str, Callable[[int | None, Say], Report]] = (
        FIGURES if clock == "wall" else {name: module.run for name, module in figures().items()}
    )
    if figure is not None and figure not in found:
        raise StreamError("There is no such figure.", got=figure, hint=f"one of {', '.join(found)}")
    return [made(events, say) for name, made in found.items() if figure in (name, None)]


def plot(name: str, rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw what a report of this paper has, if its experiment knows how."""
    figure = name.removeprefix("upstream-")
    if figure.endswith(WALL):
        PLOTS[figure.removesuffix(WALL)](rows, folder / f"{name}.svg")
        return
    module = figures().get(figure)
    draw = getattr(module, "plot", None)
    if draw is not None:
        draw(rows, folder)
