"""A MEP that a feeder keeps until its acknowledgement: its frames, and which of them must still be sent."""

from dataclasses import dataclass

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import RejectReason


class KeptMep:
    """The frames of a MEP by source, and the state of their delivery."""

    __slots__ = ("active", "at_node", "attempts", "frames", "held", "last_turn", "nacked", "turns", "waiting")

    def __init__(self, frames: dict[int, Buffer]) -> None:
        self.frames = frames
        self.waiting = dict.fromkeys(reversed(frames))
        """Sources whose frames are to be sent, the next one last."""
        self.active = False
        self.at_node = False
        """The node has said so: what it has refused goes again, all of it does not."""
        self.held = False
        """The node has said that it has all of it."""
        self.last_turn = 0
        """When its last frame left, in the order of what was sent."""
        self.turns = 0
        """Times that the node had no place for it."""
        self.nacked: dict[int, RejectReason] = {}
        """Sources whose fragment was refused and was not sent again yet."""
        self.attempts: dict[int, int] = {}
        """Damaged arrivals by source."""


@dataclass(frozen=True, slots=True)
class NextFrames:
    """Frames of a MEP in the order in which they are to be sent, and their sources."""

    mep: int
    sources: list[int]
    frames: list[Buffer]
