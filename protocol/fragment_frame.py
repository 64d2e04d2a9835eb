"""Compiled checks and copy of a received frame and its MFP; memory is read once.

The checks are those of `decode_header`, `Mfp.parse` and `check_crc`, with the same reasons in the same order. Then the
banks of the MFP are compared with the limits of what a node can write (`written_limits`).

`inspect_frame` reads the header fields before the CRC is checked, and is safe for any bytes.
`copy_mfp` copies the MFP to its slot and computes the CRC32C during the copy. If the CRC is wrong, the slot holds
damaged bytes and must not be used; no other memory was written. All functions are safe for bytes that another process
changes meanwhile; `shared_frames.refusal_of_placed` checks that the copied MFP is the one that was inspected.

`joined_crc32c` gives the CRC32C of two consecutive parts without reading them.
"""

from hltnode.protocol._native import (
    copy_mfp,
    crc32c_implementations,
    has_right_crc,
    inspect_frame,
    joined_crc32c,
)

__all__ = ["copy_mfp", "crc32c_implementations", "has_right_crc", "inspect_frame", "joined_crc32c"]
