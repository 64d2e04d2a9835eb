"""Sends frames of a send window one at a time, like a feeder."""

from hltnode.client.send_window import SendWindow
from hltnode.protocol.buffers import Buffer


def send_next(window: SendWindow, now_ns: int) -> Buffer | None:
    """Take the next frame and mark it as sent; None if there is none."""
    next_frames = window.next_frames(1)
    window.sent(now_ns, next_frames, len(next_frames.frames))
    return next_frames.frames[0] if next_frames.frames else None
