"""`penstock papers stream-mill`: the experiments of the paper on execution, one figure in a file.

Every module of this package whose name begins with `figure_` is an experiment: it has `FIGURE`, the name by which
`--figure` asks for it, `run(events, say)`, which gives the report `stream-mill-FIGURE`, and `plot(rows, path)`. All of
them run flows that were started, on the wall clock; no cost is assumed.
"""

from __future__ import annotations

from penstock.papers.experiments import Experiments

_EXPERIMENTS = Experiments(__name__, __path__, "stream-mill-")
figures, run, plot = _EXPERIMENTS.figures, _EXPERIMENTS.run, _EXPERIMENTS.plot
