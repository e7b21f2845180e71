"""How far the streams of a running graph have come, which their entrances know."""

from __future__ import annotations

from penstock.errors import StreamError
from penstock.model.recent_promises import MOST, RecentPromises, Shown
from penstock.model.time import Domain
from penstock.operators.progress.ingest import RowIngest
from penstock.runtime.graph import Graph, GraphNode


class Entrances:
    """The streams of a graph."""

    graph: Graph
    streams: list[str]
    """The names of those that are read."""

    def domain(self, stream: str) -> Domain:
        """What the ticks of a stream are."""
        return self.graph.sources[self._known(stream)][0].operator.schema.domain

    def frontier(self) -> dict[str, int]:
        """Per stream, the bound below which nothing more comes."""
        return {name: self._entrance(name).reached() for name in self.streams}

    def promised(self) -> dict[str, tuple[Shown, ...]]:
        """Per stream, what it has lately promised of some groups."""
        entrances = {name: self._entrance(name) for name in self.streams}
        kept = {name: (entrance.frontier(), entrance.schema) for name, entrance in entrances.items()}
        return {
            name: () if frontier is None else RecentPromises(frontier.newest(MOST)).shown(schema)
            for name, (frontier, schema) in kept.items()
        }

    def newest(self) -> dict[str, int | None]:
        """Per stream, the greatest time of a row on time that was fed."""
        return {name: self._entrance(name).greatest for name in self.streams}

    def _entrance(self, stream: str) -> RowIngest:
        operator = self.graph.sources[stream.lower()][0].operator
        assert isinstance(operator, RowIngest)
        return operator

    def _goes_by_the_clock(self, stream: str) -> bool:
        """Whether operators are told the time whenever the stream is looked at: it has a timer, or is latent."""
        entrances = self.graph.sources.get(stream.lower(), [])
        return any(node.operator.is_ticked or getattr(node.plan, "latent", False) for node in entrances)

    def _entrances(self) -> list[GraphNode]:
        """Of each stream the reading that speaks for it: one that is read twice counts once."""
        return [nodes[0] for nodes in self.graph.sources.values()]

    def _known(self, stream: str) -> str:
        """The key of a stream that the query reads."""
        if not isinstance(stream, str) or stream.lower() not in self.graph.sources:
            raise StreamError(
                "The query reads no such stream.", got=str(stream)[:200], hint=f"it reads {', '.join(self.streams)}"
            )
        return stream.lower()
