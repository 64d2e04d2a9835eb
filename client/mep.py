"""One MEP and its frames, before and while it is sent."""

from collections.abc import Mapping

from hltnode.client._native import allocate_frames
from hltnode.client.shared_memory import SharedMemory
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.packing import PackedFrames, frames_of_mfps
from hltnode.protocol.transport.frame_header import HEADER_SIZE


class FeedMep:
    """One MEP to send: its id `mep`, the id of its `first_event`, `n_events`, and the frames of its sources."""

    __slots__ = ("_is_sealed", "_packed", "first_event", "mep", "n_events")

    def __init__(self, mep: int, first_event: int, packed: PackedFrames) -> None:
        self.mep = mep
        self.first_event = first_event
        self.n_events = packed.n_events
        self._packed = packed
        self._is_sealed = False

    @classmethod
    def of_mfps(cls, mep: int, first_event: int, mfps: Mapping[int, Buffer]) -> "FeedMep":
        """A MEP of encoded MFPs by source id; copies them."""
        return cls(mep, first_event, frames_of_mfps(mfps, allocate=allocate_frames))

    def move_to(self, memory: SharedMemory) -> bool:
        """Move the frames into this memory, by a copy if necessary. False if it has no room now."""
        buffer = self._packed.buffer
        if memory.offset_of(buffer.data) is not None:
            return True
        place = memory.try_allocate(len(buffer))
        if place is not None:
            self._packed = self._packed.moved(place)
        return place is not None

    @property
    def mfps(self) -> dict[int, memoryview]:
        """The MFP of each source."""
        return {source: frame[HEADER_SIZE:] for source, frame in self._packed.frames().items()}

    def mfp(self, source: int) -> memoryview | None:
        """The MFP of one source, None if the source has none."""
        frame = self._packed.frame(source)
        return None if frame is None else frame[HEADER_SIZE:]

    def frames(self, run: int, send_time_ns: int, sources: tuple[int, ...] | None = None) -> dict[int, memoryview]:
        """The frames by source, of the given sources in this order or of all. The first call fixes run and time.

        Raises ValueError, which names a source without MFP.
        """
        if not self._is_sealed:
            self._packed.seal(run=run, mep=self.mep, send_time_ns=send_time_ns)
            self._is_sealed = True
        frames = self._packed.frames()
        if sources is None or sources == self._packed.sources:
            return frames
        if missing := [source for source in sources if source not in frames]:
            raise ValueError(
                f"MEP {self.mep} lacks source {missing[0]}, which was announced: give it an MFP without data"
            )
        return {source: frames[source] for source in sources}
