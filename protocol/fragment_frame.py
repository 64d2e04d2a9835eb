"""A frame and the MFP in it, as the receiver of a node takes them: in compiled code, with memory read once.

The checks are those of `decode_header`, `Mfp.parse` and `check_crc`, with the same reasons in the same order, so that a
frame is refused here as it is there. `inspect_frame` reads what the frame says of itself, before its CRC is known, and
is safe for any bytes; `copy_mfp` copies the MFP to its place and computes the CRC32C on the way. When the CRC is wrong,
the place holds damaged bytes: it must not be used, and nothing else has been written to. All are safe for bytes that
another process changes meanwhile, too; `shared_frames.refusal_of_placed` says whether what was copied is what was
found.
"""

from hltnode.protocol._native import copy_mfp, crc32c_implementations, has_right_crc, inspect_frame

__all__ = ["copy_mfp", "crc32c_implementations", "has_right_crc", "inspect_frame"]
