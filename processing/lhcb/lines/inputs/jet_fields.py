"""The input of lines on jets, and its fields."""

from hltnode.processing.lhcb.jets.collections import jet_count, jet_numbers, jet_parts, jet_pv, jet_seed
from hltnode.processing.lhcb.jets.collections import jets as jet_collection
from hltnode.processing.lhcb.lines.inputs.field_groups import number_fields
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks
from hltnode.processing.selection.expressions.units import ENERGY, NO_UNIT
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    Input,
    RelatedField,
)

jets = Input(
    "jets",
    "tracks of one primary vertex and photons in a cone around the hardest track, of the sequence hlt1_2026",
    {
        "seed": RelatedField(long_tracks, ColumnField(jet_seed, ""), "its track of the highest pt"),
        "pv": RelatedField(primary_vertices, ColumnField(jet_pv, ""), "the primary vertex of its tracks"),
        **number_fields(
            jet_numbers,
            {
                "pt": (ENERGY, "sum of the pt of its tracks and photons"),
                "eta": (NO_UNIT, "mean pseudorapidity of its tracks and photons, weighted with pt"),
                "phi": (NO_UNIT, "mean azimuth, weighted with pt"),
            },
        ),
        "n_tracks": ColumnField(jet_parts["n_tracks"], "long tracks"),
        "n_photons": ColumnField(jet_parts["n_photons"], "photons"),
        "n_constituents": DerivedField(lambda j: j.n_tracks + j.n_photons, "tracks and photons"),
    },
    collection=jet_collection,
    count=jet_count,
    constituents=("seed",),
)
