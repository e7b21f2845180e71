"""What the clock says of the streams of a run that are silent, as far as anybody has said what it may say."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.timestamps import Silence
from penstock.plan.catalog import StreamInfo


class Silences:
    """When something of each stream came last, and the bound that the clock gives since then."""

    def __init__(self, streams: Mapping[str, StreamInfo]) -> None:
        """As they are declared, by lower-case name; others may be declared later."""
        self._streams = streams
        self._arrived: dict[str, int] = {}

    def speaks_of(self, stream: str) -> bool:
        """Whether a silence of the stream says anything."""
        return self._of(stream) is not None

    def came(self, stream: str, now: int) -> None:
        """Something of the stream has come."""
        self._arrived[stream.lower()] = now

    def bound(self, stream: str, reached: int, now: int) -> int | None:
        """Nothing has come; rows have allowed `reached`.

        Where nothing was seen to come, as after a restart, the last row may have come just now.
        """
        silence = self._of(stream)
        if silence is None:
            return None
        return silence.bound(reached, self._arrived.setdefault(stream.lower(), now), now)

    def _of(self, stream: str) -> Silence | None:
        info = self._streams.get(stream.lower())
        return None if info is None else info.silence
