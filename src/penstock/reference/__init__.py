"""The oracle: every query by brute force over the complete set of elements, straight from the definitions.

It is slow and meant to be obviously right. It shares no code with the algorithms that it judges: only the model, the
plan's nodes and what scalar functions mean on single values. `evaluate` gives the TDB that any engine must come to,
`outcome` also the dead letters of the operators; `judge` says which rows of a stream are late, and so what the arrivals
are that `evaluate` is to be given.
"""

from penstock.reference.evaluation import Dead, Outcome, evaluate, outcome
from penstock.reference.lateness import Judged, judge

__all__ = ["Dead", "Judged", "Outcome", "evaluate", "judge", "outcome"]
