"""The input of lines on stubs of the muon stations, and its fields."""

from hltnode.processing.lhcb.muon.collections import muon_stubs as muon_stub_collection
from hltnode.processing.lhcb.muon.collections import stub_chi2, stub_count, stub_line
from hltnode.processing.selection.expressions.units import LENGTH
from hltnode.processing.selection.lines.inputs import ColumnField, Input

muon_stubs = Input(
    "muon stubs",
    "straight lines of four hits in the muon stations, found without a track, of the sequence hlt1_2026",
    {
        "x": ColumnField(stub_line["x"], "in the middle of M2", LENGTH),
        "y": ColumnField(stub_line["y"], "in the middle of M2", LENGTH),
        "tx": ColumnField(stub_line["tx"], "dx/dz"),
        "ty": ColumnField(stub_line["ty"], "dy/dz"),
        "chi2_x": ColumnField(stub_chi2["chi2_x"], "chi2 of the line in x per degree of freedom"),
        "chi2_y": ColumnField(stub_chi2["chi2_y"], "chi2 of the line in y per degree of freedom"),
    },
    collection=muon_stub_collection,
    count=stub_count,
)
