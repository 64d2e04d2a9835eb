"""What a feeder does with its send window, one frame at a time."""

from hltnode.client.send_window import SendWindow
from hltnode.protocol.buffers import Buffer


def send_next(window: SendWindow, now_ns: int) -> Buffer | None:
    """The next frame, which has left then; None if there is none."""
    next_frames = window.next_frames(1)
    window.sent(now_ns, next_frames, len(next_frames.frames))
    return next_frames.frames[0] if next_frames.frames else None
