"""One MEP on its way to a node."""

from collections.abc import Mapping

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.packing import PackedFrames, frames_of_mfps
from hltnode.protocol.transport.frame_header import HEADER_SIZE


class FeedMep:
    """One MEP to be sent: its id `mep`, the id of its `first_event`, `n_events`, and the frames of its sources."""

    __slots__ = ("_is_sealed", "_packed", "first_event", "mep", "n_events")

    def __init__(self, mep: int, first_event: int, packed: PackedFrames) -> None:
        self.mep = mep
        self.first_event = first_event
        self.n_events = packed.n_events
        self._packed = packed
        self._is_sealed = False

    @classmethod
    def of_mfps(cls, mep: int, first_event: int, mfps: Mapping[int, Buffer]) -> "FeedMep":
        """From encoded MFPs by source id, which are copied."""
        return cls(mep, first_event, frames_of_mfps(mfps))

    @property
    def mfps(self) -> dict[int, memoryview]:
        """The MFP of each source."""
        return {source: frame[HEADER_SIZE:] for source, frame in self._packed.frames().items()}

    def mfp(self, source: int) -> memoryview | None:
        """The MFP of one source, None if it has none here."""
        frame = self._packed.frame(source)
        return None if frame is None else frame[HEADER_SIZE:]

    def frames(self, run: int, send_time_ns: int) -> dict[int, memoryview]:
        """The frames by source; run and time are those of the first call."""
        if not self._is_sealed:
            self._packed.seal(run=run, mep=self.mep, send_time_ns=send_time_ns)
            self._is_sealed = True
        return self._packed.frames()
