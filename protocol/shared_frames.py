"""Frames in memory that another process may change at any moment: in compiled code, each length read once.

`frames_in` finds the frames of a range. What is checked before the copy may be something else during the copy, so
`refusal_of_placed` checks what has been placed, which nobody else can change. `offset_in` and `ranges_in` are for who
sends them.
"""

from hltnode.protocol._native import frames_in, offset_in, ranges_in, refusal_of_placed

__all__ = ["frames_in", "offset_in", "ranges_in", "refusal_of_placed"]
