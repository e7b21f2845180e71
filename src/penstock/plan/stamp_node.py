"""The node that gives rows their time, where they had none of their own so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties
from penstock.plan.node import SameColumns


@dataclass(frozen=True)
class Stamp(SameColumns):
    """Rows with the time at which they come here; what stood in the column of the time says nothing."""

    @cached_property
    def properties(self) -> StreamProperties:
        """Stamps never go back; what tells rows apart, or says which they update, is as it was."""
        return replace(
            self.input.properties, ordered=True, strictly_ordered=False, deterministic_ties=False, max_disorder=0
        )

    @property
    def label(self) -> str:
        """The column that is given a meaning."""
        return f"Stamp {self.schema.time} (latent until here)"
