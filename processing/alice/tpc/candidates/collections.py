"""Jets and V0 candidates of merged tracks: bounds, shapes and units."""

import numpy as np

from hltnode.processing.alice.detector_constants import (
    CHARGED_PION_MASS,
    LAMBDA_MASS,
    NEUTRAL_KAON_MASS,
    PROTON_MASS,
)
from hltnode.processing.alice.tpc.collections import clusters, first_of_event
from hltnode.processing.alice.tpc.merging.collections import merged_tracks
from hltnode.processing.framework.collections import U16, U32, Collection, Placement, Record, Role, SharedTypes

ETA_CELLS, PHI_CELLS = 18, 64
"""Cells of 0.1 in pseudorapidity, from -0.9 to 0.9, and of 2 pi / 64 in azimuth, from -pi to pi."""
PT_UNITS = 200
"""Sums of transverse momenta count in units of 1 / 200 GeV/c: integers, which have the same sum in each order."""
MAX_TRACK_PT = 50
"""GeV/c: a track with more counts as this. So the sum of 393,000 tracks, the most of an event, has 32 bits."""
MAX_JETS = 16
V0_PHI_BINS, V0_Z_BINS = 64, 50
"""Bins of displaced tracks at their innermost cluster: azimuth, and z from -250 to 250 cm; 0.098 rad and 10 cm."""
V0_PHI_REACH, V0_Z_REACH = 10, 5
"""Bins on each side in which the partner of a track is searched: 1 rad and 50 cm."""
V0_BINS = V0_PHI_BINS * V0_Z_BINS
V0_NO_BIN = 0xFFFF
V0_POSITIVE = 0x8000
MAX_PARTNERS = 2048
"""Displaced tracks of negative charge around one of positive charge. A simulated central lead collision has 846 in the
mean, at most 1,120."""
KEPT_PARTNERS = 4
"""Partners that are kept for each track; those of a track with more candidates are searched again."""
CLUSTERS_PER_V0, SPARE_V0S = 128, 64
"""An event has room for one candidate for this number of clusters, and some more."""
MAX_V0_PT = 50
"""GeV/c: a straighter track has no sign of its charge."""

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
V0_TRACK = Record(
    "tpc_v0_track",
    np.dtype(
        [(name, "<f4") for name in ("x", "y", "z", "mx", "my", "e", "k", "slope", "z_beam", "pt", "significance")]
    ),
    {
        "x": "place of the track, global frame, cm, as y and z",
        "mx": "its circle is k / 2 (X^2 + Y^2) - mx X - my Y + e = 0; (mx - k X, my - k Y) points to its left",
        "k": "curvature, 1/cm; positive ones turn to the left",
        "slope": "pz / pT",
        "z_beam": "z - slope * radius: z at the beam line of a straight track from there",
        "pt": "GeV/c",
        "significance": "distance of the beam line over its error",
    },
)
V0 = Record(
    "tpc_v0",
    np.dtype(
        [
            *((name, "<f4") for name in ("x", "y", "z", "mass_k0s", "mass_lambda", "mass_antilambda")),
            *((name, "<f4") for name in ("pt", "slope", "dca", "pointing")),
            *(("positive", "<u4"), ("negative", "<u4")),
        ]
    ),
    {
        "x": "where the tracks are closest, global frame, cm, as y and z",
        "mass_k0s": "of pi+ pi-, GeV/c2; mass_lambda: of p pi-, mass_antilambda: of pi+ and an antiproton",
        "pt": "GeV/c, of both tracks together; slope: pz / pT of both",
        "dca": "distance of the tracks there, cm",
        "pointing": "cosine of the angle between momentum and the way from the beam line, in the transverse plane",
        "positive": "number of the merged track in the event; negative alike",
    },
)

tpc_candidate_types = SharedTypes(
    __file__,
    "tpc_candidate_types",
    records=(JET, V0_TRACK, V0),
    sizes={
        "tpc_eta_cells": ETA_CELLS,
        "tpc_phi_cells": PHI_CELLS,
        "tpc_pt_units": PT_UNITS,
        "tpc_max_track_pt": MAX_TRACK_PT,
        "tpc_max_jets": MAX_JETS,
        "tpc_v0_phi_bins": V0_PHI_BINS,
        "tpc_v0_z_bins": V0_Z_BINS,
        "tpc_v0_phi_reach": V0_PHI_REACH,
        "tpc_v0_z_reach": V0_Z_REACH,
        "tpc_v0_bins": V0_BINS,
        "tpc_v0_no_bin": V0_NO_BIN,
        "tpc_v0_positive": V0_POSITIVE,
        "tpc_max_partners": MAX_PARTNERS,
        "tpc_max_v0_pt": MAX_V0_PT,
        "tpc_kept_partners": KEPT_PARTNERS,
        "tpc_pion_mass": CHARGED_PION_MASS,
        "tpc_proton_mass": PROTON_MASS,
        "tpc_kaon_mass": NEUTRAL_KAON_MASS,
        "tpc_lambda_mass": LAMBDA_MASS,
    },
)

jets = Collection(
    "tpc_jets",
    capacity=lambda limits: limits.events * MAX_JETS,
    placement=Placement.fixed(MAX_JETS),
)
jet = jets.column("jet", JET)
jet_count = jets.per_event("count", U32, role=Role.OUTPUT)

v0_track = merged_tracks.column("v0_track", V0_TRACK)
v0_bin = merged_tracks.column("v0_bin", U16)
"""V0_NO_BIN: the track takes no part. V0_POSITIVE and a bin: positive charge."""
v0_bin_begins = merged_tracks.per_event("v0_bin_begins", U32, width=V0_BINS + 1)
v0_partners = merged_tracks.column("v0_partners", U32)
"""Numbers of the displaced tracks of negative charge, by bins."""
v0s_of_track = merged_tracks.column("v0s_of_track", U16)
"""Candidates of each track of positive charge."""
v0_first_partners = merged_tracks.column("v0_first_partners", U32, width=KEPT_PARTNERS)
"""Partners of the candidates of a track that has KEPT_PARTNERS or fewer."""

v0s = Collection(
    "tpc_v0s",
    capacity=lambda limits: clusters.capacity(limits) // CLUSTERS_PER_V0 + limits.events * SPARE_V0S,
    placement=Placement(offsets=first_of_event, divisor=CLUSTERS_PER_V0, per_event=SPARE_V0S),
)
v0 = v0s.column("v0", V0)
v0_count = v0s.per_event("count", U32, role=Role.OUTPUT)
