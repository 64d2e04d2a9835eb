"""The output list of tracks."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.mu3e.tracks.collections import own_track_count, track

TRACKS = OutputList(
    name="track_list",
    text="the tracks that begin in the sub-slice",
    count=own_track_count,
    values={
        "track_x": ListValue(column=track, member="x", text="x of the first hit", unit="mm"),
        "track_y": ListValue(column=track, member="y", text="y of the first hit", unit="mm"),
        "track_z": ListValue(column=track, member="z", text="z of the first hit", unit="mm"),
        "px": ListValue(column=track, member="px", text="x of the momentum there", unit="MeV/c"),
        "py": ListValue(column=track, member="py", text="y of the momentum there", unit="MeV/c"),
        "pz": ListValue(column=track, member="pz", text="z of the momentum there", unit="MeV/c"),
        "charge": ListValue(column=track, member="charge", text="1 or -1"),
        "track_chi2": ListValue(column=track, member="chi2", text="chi2 of its triplets"),
        "track_time": ListValue(column=track, member="time", text="time in the sub-slice", unit="ns"),
        "track_hits": ListValue(column=track, member="hits", text="hits, 3 to 5"),
    },
)
