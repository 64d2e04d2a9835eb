"""Frames in memory that another process may change at any moment, in compiled code.

What is checked before the copy may be something else during the copy, so `refusal_of_placed` checks what has been
placed, which no other process can change. `offset_in` and `ranges_in` are for the sender.
"""

from hltnode.protocol._native import offset_in, ranges_in, refusal_of_placed

__all__ = ["offset_in", "ranges_in", "refusal_of_placed"]
