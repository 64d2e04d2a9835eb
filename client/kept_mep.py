"""A MEP that a feeder keeps until its acknowledgement: its frames, and the frames that must still be sent."""

from typing import NamedTuple

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import RejectReason


class KeptMep:
    """The frames of a MEP by source, and the state of their delivery."""

    __slots__ = ("active", "at_node", "attempts", "frames", "held", "last_turn", "nacked", "turns", "waiting")

    def __init__(self, frames: dict[int, Buffer]) -> None:
        self.frames = frames
        self.waiting = dict.fromkeys(reversed(frames))
        """Sources whose frames are still to be sent, the next one last."""
        self.active = False
        self.at_node = False
        """The node reported that the MEP is there: its refused fragments are repeated, not the whole MEP."""
        self.held = False
        """The node reported that it holds the whole MEP."""
        self.last_turn = 0
        """Sequence number of its last sent frame."""
        self.turns = 0
        """How many times the node had no slot for it."""
        self.nacked: dict[int, RejectReason] = {}
        """Sources whose fragment was refused and is not repeated yet."""
        self.attempts: dict[int, int] = {}
        """Damaged arrivals by source."""

    @property
    def is_begun(self) -> bool:
        """Whether frames were sent that the node has not refused: it has opened the MEP, or has not read them yet."""
        return len(self.nacked) < len(self.frames) and any(
            source not in self.nacked and source not in self.waiting for source in self.frames
        )


class NextFrames(NamedTuple):
    """Frames of a MEP in sending order, and their sources."""

    mep: int
    sources: list[int]
    frames: list[Buffer]
