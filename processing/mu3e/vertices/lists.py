"""Output lists of vertices and of windows."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.mu3e.vertices.collections import vertex, vertex_count, window, window_count

VERTICES = OutputList(
    name="vertex_list",
    text="the vertices of two positrons and an electron",
    count=vertex_count,
    values={
        "vertex_x": ListValue(column=vertex, member="x", text="x", unit="mm"),
        "vertex_y": ListValue(column=vertex, member="y", text="y", unit="mm"),
        "vertex_z": ListValue(column=vertex, member="z", text="z", unit="mm"),
        "vertex_chi2": ListValue(column=vertex, member="chi2", text="chi2 of the three tracks"),
        "vertex_distance": ListValue(column=vertex, member="distance", text="largest distance of a track", unit="mm"),
        "energy": ListValue(column=vertex, member="energy", text="energy of the three", unit="MeV"),
        "momentum": ListValue(column=vertex, member="momentum", text="size of the sum of momenta", unit="MeV/c"),
        "mass": ListValue(column=vertex, member="mass", text="mass of the three", unit="MeV/c^2"),
        "vertex_time": ListValue(column=vertex, member="time", text="time in the sub-slice", unit="ns"),
        "track0": ListValue(column=vertex, member="track0", text="place of the first positron"),
        "track1": ListValue(column=vertex, member="track1", text="place of the second positron"),
        "track2": ListValue(column=vertex, member="track2", text="place of the electron"),
    },
)
WINDOWS = OutputList(
    name="windows",
    text="the windows of time that are kept",
    count=window_count,
    values={
        "start_ns": ListValue(column=window, member="start_ns", text="start, from that of the sub-slice", unit="ns"),
        "end_ns": ListValue(column=window, member="end_ns", text="end, from the start of the sub-slice", unit="ns"),
        "lines": ListValue(column=window, member="lines", text="kinds of its vertices, as bits"),
        "window_vertices": ListValue(column=window, member="vertices", text="vertices that begin in it"),
        "window_chi2": ListValue(column=window, member="chi2", text="smallest chi2 of a vertex"),
        "window_energy_error": ListValue(
            column=window, member="energy_error", text="smallest distance of the energy from the muon mass", unit="MeV"
        ),
        "window_momentum": ListValue(
            column=window, member="momentum", text="smallest sum of the momenta of a vertex", unit="MeV/c"
        ),
        "window_hits": ListValue(column=window, member="hits", text="largest number of hits of three tracks"),
    },
)
