"""How long a run keeps what it writes beside its results."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import StreamError
from penstock.model.time import SECOND, duration_ticks
from penstock.storage.log import KEEP


@dataclass(frozen=True)
class Retention:
    """What is kept of a run, and for how long; results are kept for good.

    `records` of the log, for whoever wants to look back: the last one is all that the run itself needs. Late rows and
    dead letters for a time such as `30 days`, or for good; they are forgotten when new ones come. With `compact`, small
    files are written together as they pile up; readers of the log do not notice, and whoever lists the folder at
    that moment may miss rows, never see one twice.
    """

    records: int = KEEP
    late: str | None = None
    dead_letters: str | None = None
    compact: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if isinstance(self.records, bool) or not isinstance(self.records, int) or self.records < 2:
            raise StreamError("At least two records of a log are kept.", got=repr(self.records), hint="records=100")
        if not isinstance(self.compact, bool):
            raise StreamError("compact is True or False.", got=repr(self.compact)[:200])
        self.seconds("late")
        self.seconds("dead_letters")

    def seconds(self, output: str) -> float | None:
        """How long rows of an output are kept; None is for good."""
        text: str | None = getattr(self, output)
        if text is None:
            return None
        if not isinstance(text, str):
            raise StreamError("Rows are kept for a length of time.", got=repr(text)[:200], hint=f"{output}='30 days'")
        return duration_ticks(text) / SECOND
