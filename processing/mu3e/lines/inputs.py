"""The inputs of lines: the sub-slice, its tracks, vertices and windows."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import ChainFlag, EventFlag
from hltnode.processing.mu3e.detector_constants import MUON_MASS
from hltnode.processing.mu3e.hits.collections import event_number, own_hit_count
from hltnode.processing.mu3e.hits.flags import mu3e_flag_types
from hltnode.processing.mu3e.tracks.collections import own_track_count, track, triplet_count
from hltnode.processing.mu3e.tracks.collections import tracks as track_collection
from hltnode.processing.mu3e.vertices.collections import vertex, vertex_count, window, window_count
from hltnode.processing.mu3e.vertices.collections import vertices as vertex_collection
from hltnode.processing.mu3e.vertices.collections import windows as window_collection
from hltnode.processing.selection.expressions.functions import sqrt
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input


def _flagged(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda one: (one.flags & mask) != 0, text)


def _flag_field(flag: ChainFlag) -> DerivedField:
    return _flagged(flag.mask, "true if: " + flag.text[0].lower() + flag.text[1:].rstrip("."))


def _kind(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda one: (one.kinds & mask) != 0, text)


event = Input(
    "events",
    "the sub-slice as a whole",
    {
        "n_hits": ColumnField(own_hit_count, "hits"),
        "n_triplets": ColumnField(triplet_count, "triplets that pass the geometric selection"),
        "n_tracks": ColumnField(own_track_count, "tracks that begin in it"),
        "n_vertices": ColumnField(vertex_count, "vertices that begin in it"),
        "n_windows": ColumnField(window_count, "windows"),
        "slice": ColumnField(event_number, "number of the time slice, low 32 bits", element=0),
        "sub_slice": ColumnField(event_number, "number of the sub-slice in its time slice", element=1),
        "flags": ColumnField(event_flags, "the flag word"),
        "incomplete": _flagged(EventFlag.INCOMPLETE, "true if the fragment of a source was missing"),
        **{flag.name: _flag_field(flag) for flag in mu3e_flag_types.flags},
    },
)

tracks = Input(
    "tracks",
    "tracks that begin in the sub-slice",
    {
        **{name: ColumnField(track, f"{name} of the first hit in mm", member=name) for name in ("x", "y", "z")},
        **{
            name: ColumnField(track, f"{name[1]} of the momentum there in MeV/c", member=name)
            for name in ("px", "py", "pz")
        },
        "momentum": ColumnField(track, "momentum in MeV/c", member="momentum"),
        "transverse": DerivedField(lambda one: sqrt(one.px * one.px + one.py * one.py), "transverse momentum in MeV/c"),
        "chi2": ColumnField(track, "chi2 of its triplets", member="chi2"),
        "time": ColumnField(track, "time in ns since the start of the sub-slice", member="time"),
        "charge": ColumnField(track, "1 or -1", member="charge"),
        "hits": ColumnField(track, "hits, 3 to 5", member="hits"),
    },
    collection=track_collection,
    count=own_track_count,
)

vertices = Input(
    "vertices",
    "vertices of two positrons and an electron that begin in the sub-slice",
    {
        **{name: ColumnField(vertex, f"{name} in mm", member=name) for name in ("x", "y", "z")},
        "radius": DerivedField(lambda one: sqrt(one.x * one.x + one.y * one.y), "distance from the axis in mm"),
        "chi2": ColumnField(vertex, "chi2 of the three tracks", member="chi2"),
        "distance": ColumnField(vertex, "largest distance of a track in mm", member="distance"),
        "energy": ColumnField(vertex, "energy of the three in MeV", member="energy"),
        "energy_error": DerivedField(
            lambda one: sqrt((one.energy - MUON_MASS) * (one.energy - MUON_MASS)),
            "distance of the energy from the mass of the muon in MeV",
        ),
        "momentum": ColumnField(vertex, "size of the sum of momenta in MeV/c", member="momentum"),
        "mass": ColumnField(vertex, "mass of the three in MeV/c^2", member="mass"),
        "time": ColumnField(vertex, "time in ns since the start of the sub-slice", member="time"),
    },
    collection=vertex_collection,
    count=vertex_count,
)

time_windows = Input(
    "time_windows",
    "windows that begin in the sub-slice",
    {
        "start": ColumnField(window, "start in ns since that of the sub-slice", member="start_ns"),
        "end": ColumnField(window, "end in ns since the start of the sub-slice", member="end_ns"),
        "kinds": ColumnField(window, "kinds of its vertices, as bits", member="lines"),
        "vertices": ColumnField(window, "vertices that begin in it", member="vertices"),
        "chi2": ColumnField(window, "smallest chi2 of a vertex", member="chi2"),
        "energy_error": ColumnField(
            window, "smallest distance of the energy from the mass of the muon in MeV", member="energy_error"
        ),
        "momentum": ColumnField(window, "smallest sum of the momenta of a vertex in MeV/c", member="momentum"),
        "hits": ColumnField(window, "largest number of hits of three tracks", member="hits"),
        "long": _kind(2, "true with a vertex of which all tracks have a fourth hit"),
        "recurling": _kind(4, "true with a vertex of which all tracks have a recurling hit"),
    },
    collection=window_collection,
    count=window_count,
)

INPUTS = {"event": event, "tracks": tracks, "vertices": vertices, "time_windows": time_windows}
EVENT_WORDS = (event.candidate().slice, event.candidate().sub_slice)
"""The numbers that scalers hash. The run is not among them: MFPs do not have it."""
USUAL_FIELDS = (
    *("event.n_hits", "event.n_tracks", "event.n_vertices", "event.n_windows", "event.slice", "event.sub_slice"),
    *("event.flags", "tracks.momentum", "tracks.charge", "tracks.chi2", "tracks.time", "vertices.*"),
    "decisions.accepted",
)
