"""`penstock papers genmig`: the experiments of the paper on plan migration, one figure in a file.

Every module of this package whose name begins with `figure_` is an experiment: it has `FIGURE`, the name by which
`--figure` asks for it, `run(events, say)`, which gives the report `genmig-FIGURE`, and may have `plot(rows, path)`.
Nothing is simulated: plans are of the operators that the tests judge, and what is timed is timed by the clock.
"""

from __future__ import annotations

from penstock.papers.experiments import Experiments

_EXPERIMENTS = Experiments(__name__, __path__, "genmig-")
figures, run, plot = _EXPERIMENTS.figures, _EXPERIMENTS.run, _EXPERIMENTS.plot
