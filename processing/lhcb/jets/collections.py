"""The collection of jets: bounds, shapes and units."""

from hltnode.processing.framework.collections import F32, U8, U16, U32, Collection, Placement, Role, SharedTypes

MAX_JETS_PER_EVENT = 16
PT_UNITS = 16
"""Units of a transverse momentum in sums: 1/16 MeV."""
MAX_PART_PT = 1_000_000
"""MeV. A track or a photon with more counts as this, so that its units have 24 bits, exact in a float."""
ANGLE_UNITS = 65536
"""Units of a difference of pseudorapidities or azimuths in sums."""

jet_types = SharedTypes(
    __file__,
    "jet_types",
    sizes={
        "max_jets": MAX_JETS_PER_EVENT,
        "jet_pt_units": PT_UNITS,
        "max_jet_part_pt": MAX_PART_PT,
        "jet_angle_units": ANGLE_UNITS,
    },
)

jets = Collection(
    "jets",
    capacity=lambda limits: limits.events * MAX_JETS_PER_EVENT,
    placement=Placement.fixed(MAX_JETS_PER_EVENT),
    max_per_event=MAX_JETS_PER_EVENT,
)
"""Jets in the order of their seeds, the one of the highest transverse momentum first. An event with more seeds has a
note; the first jets are kept."""
jet_count = jets.per_event("count", U32, role=Role.OUTPUT)
jet_numbers = {name: jets.column(name, F32) for name in ("pt", "eta", "phi")}
"""Sum of the transverse momenta in MeV; means of pseudorapidity and azimuth (-pi to pi) with these as weights."""
jet_parts = {name: jets.column(name, U16) for name in ("n_tracks", "n_photons")}
"""Number of its long tracks, the seed included, and of its photons."""
jet_seed = jets.column("seed", U16)
"""Number of its seed, a long track, in the event."""
jet_pv = jets.column("pv", U8)
"""Index of the primary vertex of its tracks."""
