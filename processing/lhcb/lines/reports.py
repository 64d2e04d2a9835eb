"""Objects that lines select, in the form of HltSelReports (docs/formats/trigger-banks.md)."""

from typing import Any

from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks, velo_tracks
from hltnode.processing.lhcb.lines.inputs.vertex_fields import two_track_vertices, v0_pairs
from hltnode.processing.lhcb.scifi.collections import scifi_id
from hltnode.processing.lhcb.secondary_vertices.collections import v0_pair_vertices, vertex_tracks_of
from hltnode.processing.lhcb.tracks.long.collections import long_hits, long_ut_hits, long_velo_track
from hltnode.processing.lhcb.ut.collections import ut_id
from hltnode.processing.lhcb.velo.collections import hit_id, track_hit_count, track_hits
from hltnode.processing.selection.reports.reported import Hits, Parts, Reported
from hltnode.protocol.raw_data.selection_reports import ClassId


def _of_long_track(t: Any) -> tuple[Any, ...]:
    """State at the beam line with q/p, then chi2/ndf and ndf of the fit to the VELO hits, which has 4 parameters."""
    return t.z, t.x, t.y, t.tx, t.ty, t.qop, t.chi2, 2 * t.velo.n_hits - 4.0


REPORTED = (
    Reported(
        input=primary_vertices,
        class_id=ClassId.VERTEX,
        numbers=lambda v: (v.x, v.y, v.z),
        names=("x", "y", "z"),
    ),
    Reported(
        input=velo_tracks,
        class_id=ClassId.TRACK,
        numbers=lambda t: (t.z, t.x, t.y, t.tx, t.ty),
        names=("z", "x", "y", "tx", "ty"),
        hits=(Hits(track_hits, hit_id, track_hit_count),),
    ),
    Reported(
        input=long_tracks,
        class_id=ClassId.TRACK,
        numbers=_of_long_track,
        names=("z", "x", "y", "tx", "ty", "qop", "chi2", "ndf"),
        hits=(
            Hits(track_hits, hit_id, track_hit_count, long_velo_track),
            Hits(long_ut_hits, ut_id),
            Hits(long_hits, scifi_id),
        ),
    ),
    Reported(
        input=two_track_vertices,
        class_id=ClassId.VERTEX,
        numbers=lambda v: (v.x, v.y, v.z, v.chi2),
        names=("x", "y", "z", "chi2"),
        parts=(Parts(vertex_tracks_of, long_tracks),),
    ),
    Reported(
        input=v0_pairs,
        class_id=ClassId.VERTEX,
        numbers=lambda _: (),
        parts=(Parts(v0_pair_vertices, two_track_vertices),),
    ),
)
"""Parts precede the objects that are made of them."""
