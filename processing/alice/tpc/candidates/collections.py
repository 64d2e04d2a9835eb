"""Jets of merged tracks: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import U32, Collection, Placement, Record, Role, SharedTypes

ETA_CELLS, PHI_CELLS = 18, 64
"""Cells of 0.1 in pseudorapidity, from -0.9 to 0.9, and of 2 pi / 64 in azimuth, from -pi to pi."""
PT_UNITS = 200
"""Sums of transverse momenta count in units of 1 / 200 GeV/c: integers, which have the same sum in each order."""
MAX_TRACK_PT = 50
"""GeV/c: a track with more counts as this. So the sum of 393,000 tracks, the most of an event, has 32 bits."""
MAX_JETS = 16

JET = Record(
    "tpc_jet",
    np.dtype(
        [*((name, "<f4") for name in ("pt", "background", "eta", "phi")), ("n_tracks", "<u4"), ("n_cells", "<u4")]
    ),
    {
        "pt": "sum of the transverse momenta of its tracks, GeV/c",
        "background": "mean of the event on as many cells, GeV/c",
        "eta": "centre of the cone; phi: rad, from -pi to pi",
        "n_cells": "cells of the cone inside of the acceptance",
    },
)

tpc_candidate_types = SharedTypes(
    __file__,
    "tpc_candidate_types",
    records=(JET,),
    sizes={
        "tpc_eta_cells": ETA_CELLS,
        "tpc_phi_cells": PHI_CELLS,
        "tpc_pt_units": PT_UNITS,
        "tpc_max_track_pt": MAX_TRACK_PT,
        "tpc_max_jets": MAX_JETS,
    },
)

jets = Collection(
    "tpc_jets",
    capacity=lambda limits: limits.events * MAX_JETS,
    placement=Placement.fixed(MAX_JETS),
)
jet = jets.column("jet", JET)
jet_count = jets.per_event("count", U32, role=Role.OUTPUT)
