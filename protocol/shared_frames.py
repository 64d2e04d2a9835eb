"""Frames in memory that another process may change at any moment, in compiled code.

The bytes may change between the check and the copy. So `refusal_of_placed` checks the copy, which no other process can
change. `offset_in` and `ranges_in` are for the sender of such frames.
"""

from hltnode.protocol._native import offset_in, ranges_in, refusal_of_placed

__all__ = ["offset_in", "ranges_in", "refusal_of_placed"]
