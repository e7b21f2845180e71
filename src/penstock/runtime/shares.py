"""How the time of a run is shared among components of its graph: deficit round-robin by measured time.

A component is what is joined by arcs, break nodes or not; the queries of one stream are one component, and so are those
of streams that somebody joins. Each has a weight. An element of a component is taken while the component has time left;
what it took, with all that came of it, is taken off. When none that has something to do has time left, each is given a
round's time, by weight. So shares follow weights as long as all have something to do, however much an element costs,
and what one does not use goes to the others: nobody saves up more than a round. An element is not interrupted, so in
the short run shares are off by what the dearest one costs.
"""

from __future__ import annotations

from collections.abc import Mapping

ROUND = 0.01
"""So many seconds a round gives to a component of mean weight."""


class Shares:
    """The time that components have left in this round."""

    def __init__(self, component_of: Mapping[str, int], weights: Mapping[int, float]) -> None:
        """The component of each stream, and the weight of each component."""
        mean = sum(weights.values()) / max(len(weights), 1)
        self._component_of = dict(component_of)
        self._rounds = {component: ROUND * weight / mean for component, weight in weights.items()}
        self._left = dict(self._rounds)
        self.spent = dict.fromkeys(weights, 0.0)
        """Seconds that each component has taken."""

    def admits(self, stream: str) -> bool:
        """Whether the component of a stream has time left."""
        component = self._component_of.get(stream.lower())
        return component is None or self._left[component] > 0

    def charge(self, stream: str, seconds: float) -> None:
        """An element of a stream took so long."""
        component = self._component_of.get(stream.lower())
        if component is not None:
            self._left[component] -= seconds
            self.spent[component] += seconds

    def replenish(self) -> None:
        """Another round, and as many more as it takes until somebody has time."""
        short = [-left / self._rounds[component] for component, left in self._left.items()]
        rounds = max(int(min(short, default=0.0)), 0) + 1
        for component, share in self._rounds.items():
            self._left[component] = min(self._left[component] + rounds * share, share)

    def take_over(self, former: Shares) -> None:
        """The graph has changed: components that have a stream of a former one go on with what it had left."""
        for stream, component in self._component_of.items():
            before = former._component_of.get(stream)
            if before is not None:
                self._left[component] = min(former._left[before], self._rounds[component])
