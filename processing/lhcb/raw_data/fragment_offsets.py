"""fragment_offsets: where every fragment of the batch lies (kernels/batch/fragment_offsets.cuh)."""

import numpy as np

from hltnode.processing.framework.declaration import (
    Algorithm,
    Buffer,
    Grid,
    batch_header,
    event_rows,
    mep_rows,
    mfp_rows,
    raw_input,
)

fragment_offset = Buffer(name="fragment_offset", dtype=np.dtype("<u4"), count=lambda limits: limits.fragments)
fragment_size = Buffer(name="fragment_size", dtype=np.dtype("<u2"), count=lambda limits: limits.fragments)
fragment_type = Buffer(name="fragment_type", dtype=np.dtype("u1"), count=lambda limits: limits.fragments)

raw_fragments = (
    batch_header,
    raw_input,
    mfp_rows,
    mep_rows,
    event_rows,
    fragment_offset,
    fragment_size,
    fragment_type,
)
"""By what a decoder finds the fragments of its event: its first inputs, in this order."""

fragment_offsets = Algorithm(
    name="fragment_offsets",
    grid=Grid.ROWS,
    block_size=64,
    inputs=(batch_header, raw_input, mfp_rows),
    outputs=(fragment_offset, fragment_size, fragment_type),
)
