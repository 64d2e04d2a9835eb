"""Monitoring histograms of HLT1, for every set of lines: occupancies, tracks, primary vertices, momenta and masses.

Those over single hits and VELO tracks use a sample of the events, so all together cost well below 1 % of the
sequence (docs/decisions/0017).
"""

from functools import partial
from typing import Any

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM, FIRST_MAT, N_MAT_INDICES, SIPMS_PER_MAT
from hltnode.processing.lhcb.geometry.ideal_velo import CHIPS_PER_SENSOR, N_SENSORS
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.half_fields import half_pairs
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks, velo_tracks
from hltnode.processing.lhcb.lines.inputs.vertex_fields import dimuons, displaced_vertices
from hltnode.processing.lhcb.muon.collections import muon_count, muon_hits, muon_x, muon_z
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_hits, scifi_id, scifi_x, scifi_z
from hltnode.processing.lhcb.ut.collections import ut_count, ut_hits, ut_id, ut_x, ut_z
from hltnode.processing.lhcb.velo.collections import cluster_count, hit_id, hit_pixels, hit_z, hits
from hltnode.processing.selection.expressions.functions import log, minimum
from hltnode.processing.selection.expressions.units import LENGTH, GeV, MeV, m, mm, rad
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import ColumnField, Input

ONE_IN_TEN, ONE_IN_HUNDRED = 0.1, 0.01


def _hits(name: str, collection: Collection, count: Column, ids: Column | None = None, **columns: Column) -> Input:
    fields = {field: ColumnField(column, "position", LENGTH) for field, column in columns.items()}
    if ids is not None:
        fields["id"] = ColumnField(ids, "LHCbID")
    return Input(name, "hits", fields, collection=collection, count=count)


CHANNEL_BITS = 0x0FFF_FFFF
"""Bits of an LHCbID below the type of the detector."""
VELO_ASICS, SCIFI_SIPMS, UT_SECTORS = "velo_asics", "scifi_sipms", "ut_sectors"
"""Histograms with one bin for each group of channels (hltnode.processing.lhcb.channels)."""
UT_SECTOR_STEP, FIRST_UT_SECTOR, N_UT_SECTORS = 512, 8192, 4096
"""Channel ids of the sectors of the UT are a multiple of the first number, their quotients a range of which a quarter
is in use."""
N_ASICS = CHIPS_PER_SENSOR * N_SENSORS
FIRST_SIPM, N_SIPMS = FIRST_MAT * SIPMS_PER_MAT, N_MAT_INDICES * SIPMS_PER_MAT
# A kernel converts a number to single precision: exact here, since a mask leaves at most 24 bits.
_VELO_SENSOR, _VELO_CHIP = 1 << 18, 1 << 16
_SENSOR_BITS, _CHIP_BITS = 0xFF * _VELO_SENSOR, 3 * _VELO_CHIP
_SIPM_BITS = CHANNEL_BITS - (CHANNELS_PER_SIPM - 1)
_SECTOR_BITS = CHANNEL_BITS - (UT_SECTOR_STEP - 1)


def _asic_of(h: Any) -> Any:
    return CHIPS_PER_SENSOR * ((h.id & _SENSOR_BITS) / _VELO_SENSOR) + (h.id & _CHIP_BITS) / _VELO_CHIP


_sized_hits = Input(
    "VELO hits", "hits", {"pixels": ColumnField(hit_pixels, "pixels")}, collection=hits, count=cluster_count
)
_velo_hits = _hits("VELO hits", hits, cluster_count, hit_id, z=hit_z)
_ut_hits = _hits("UT hits", ut_hits, ut_count, ut_id, x=ut_x, z=ut_z)
_scifi_hits = _hits("SciFi hits", scifi_hits, scifi_count, scifi_id, x=scifi_x, z=scifi_z)
_muon_hits = _hits("muon hits", muon_hits, muon_count, x=muon_x, z=muon_z)


def _steep_on(sign: float, t: Any) -> Any:
    return (abs(t.ty) > 3.0 * abs(t.tx)) & (sign * t.ty > 0.0) & ~t.backward


def _flat_on(sign: float, t: Any) -> Any:
    return (abs(t.tx) > 3.0 * abs(t.ty)) & (sign * t.tx > 0.0) & ~t.backward


_OCCUPANCIES = (
    Histogram("velo_hit_z", lambda h: h.z, 105, -300 * mm, 750 * mm, of=_velo_hits, prescale=ONE_IN_HUNDRED,
              description="VELO hits along the beam"),
    Histogram("ut_hit_x", lambda h: h.x, 100, -800 * mm, 800 * mm, of=_ut_hits, prescale=ONE_IN_HUNDRED,
              description="UT hits across the beam"),
    Histogram("ut_hit_z", lambda h: h.z, 100, 2300 * mm, 2700 * mm, of=_ut_hits, prescale=ONE_IN_HUNDRED,
              description="UT hits along the beam"),
    Histogram("scifi_hit_x", lambda h: h.x, 100, -3.3 * m, 3.3 * m, of=_scifi_hits, prescale=ONE_IN_HUNDRED,
              description="SciFi hits across the beam"),
    Histogram("scifi_hit_z", lambda h: h.z, 100, 7.7 * m, 9.5 * m, of=_scifi_hits, prescale=ONE_IN_HUNDRED,
              description="SciFi hits along the beam"),
    Histogram("muon_hit_x", lambda h: h.x, 100, -6 * m, 6 * m, of=_muon_hits, prescale=ONE_IN_HUNDRED,
              description="muon hits across the beam"),
    Histogram("muon_hit_z", lambda h: h.z, 100, 15 * m, 20 * m, of=_muon_hits, prescale=ONE_IN_HUNDRED,
              description="muon hits along the beam"),
)  # fmt: skip

_CHANNELS = (
    Histogram(VELO_ASICS, _asic_of, N_ASICS, -0.5, N_ASICS - 0.5, of=_velo_hits, prescale=ONE_IN_HUNDRED,
              description="VELO hits by ASIC: 3 times the sensor plus the ASIC"),
    Histogram(SCIFI_SIPMS, lambda h: (h.id & _SIPM_BITS) / CHANNELS_PER_SIPM, N_SIPMS, FIRST_SIPM - 0.5,
              FIRST_SIPM + N_SIPMS - 0.5, of=_scifi_hits, prescale=ONE_IN_HUNDRED,
              description="SciFi hits by SiPM: channel id divided by 128"),
    Histogram(UT_SECTORS, lambda h: (h.id & _SECTOR_BITS) / UT_SECTOR_STEP, N_UT_SECTORS, FIRST_UT_SECTOR - 0.5,
              FIRST_UT_SECTOR + N_UT_SECTORS - 0.5, of=_ut_hits, prescale=ONE_IN_HUNDRED,
              description="UT hits by sector: channel id divided by 512"),
)  # fmt: skip

_EVENTS = (
    Histogram("velo_clusters", lambda e: e.n_velo_clusters, 50, -0.5, 5999.5, of=event, description="VELO clusters"),
    Histogram("velo_tracks", lambda e: e.n_velo_tracks, 50, -0.5, 599.5, of=event, description="VELO tracks"),
    Histogram("pvs", lambda e: e.n_pvs, 20, -0.5, 19.5, of=event, description="primary vertices of an event"),
    Histogram("scifi_hits", lambda e: e.n_scifi_hits, 50, -0.5, 14999.5, of=event, where=lambda e: e.passes_gec,
              description="SciFi hits of an event"),
    Histogram("muon_hits", lambda e: e.n_muon_hits, 50, -0.5, 999.5, of=event, where=lambda e: e.passes_gec,
              description="muon hits of an event"),
    Histogram("long_tracks", lambda e: e.n_long_tracks, 50, -0.5, 199.5, of=event, where=lambda e: e.passes_gec,
              description="long tracks of an event"),
    Histogram("vertices", lambda e: e.n_vertices, 50, -0.5, 99.5, of=event, where=lambda e: e.passes_gec,
              description="two-track vertices of an event"),
)  # fmt: skip

_VELO = (
    Histogram("pv_x", lambda v: v.x, 50, -1 * mm, 1 * mm, of=primary_vertices, description="primary vertices in x"),
    Histogram("pv_y", lambda v: v.y, 50, -1 * mm, 1 * mm, of=primary_vertices, description="primary vertices in y"),
    Histogram("pv_z", lambda v: v.z, 50, -250 * mm, 250 * mm, of=primary_vertices,
              description="primary vertices along the beam"),
    Histogram("pv_tracks", lambda v: v.n_tracks, 50, -0.5, 149.5, of=primary_vertices,
              description="weights of the tracks of a primary vertex"),
    Histogram("velo_track_hits", lambda t: t.n_hits, 30, -0.5, 29.5, of=velo_tracks, prescale=ONE_IN_TEN,
              description="hits of a VELO track"),
)  # fmt: skip

# A track at 18 degrees or less to the y axis crosses y = 0 at the x of the beam, whatever the y of the beam: the slopes
# to both sides of the axis cancel in the median. The range covers all positions that a configuration may set. To fill
# them in all events would cost 1.3 us of an event, 0.9 % of the VELO sequence.
_BEAM = (
    Histogram("beam_x", lambda t: t.x - t.tx / t.ty * t.y, 800, -4 * mm, 4 * mm, of=velo_tracks,
              where=lambda t: abs(t.ty) > 3.0 * abs(t.tx), prescale=ONE_IN_TEN,
              description="steep VELO tracks where they cross y = 0"),
    Histogram("beam_y", lambda t: t.y - t.ty / t.tx * t.x, 800, -4 * mm, 4 * mm, of=velo_tracks,
              where=lambda t: abs(t.tx) > 3.0 * abs(t.ty), prescale=ONE_IN_TEN,
              description="flat VELO tracks where they cross x = 0"),
    Histogram("has_pv", lambda e: minimum(e.n_pvs, 1), 2, -0.5, 1.5, of=event, where=lambda e: e.n_velo_tracks > 0,
              description="events with VELO tracks: 1 with a primary vertex, 0 without"),
)  # fmt: skip

# The same for the tracks of each half of the VELO: a half at a wrong place shows the beam at a wrong place. A forward
# track to x > 0 is in side A. The halves are rotated by 45 degrees about the beam, so that side A also has most of the
# steep tracks upwards, and side C those downwards.
_BEAM_OF_HALVES = (
    *(
        Histogram(f"beam_x_of_velo_{side}", lambda t: t.x - t.tx / t.ty * t.y, 400, -4 * mm, 4 * mm, of=velo_tracks,
                  where=partial(_steep_on, sign), prescale=ONE_IN_TEN,
                  description=f"steep VELO tracks on side {side.upper()} where they cross y = 0")
        for side, sign in (("a", 1.0), ("c", -1.0))
    ),
    *(
        Histogram(f"beam_y_of_velo_{side}", lambda t: t.y - t.ty / t.tx * t.x, 400, -4 * mm, 4 * mm, of=velo_tracks,
                  where=partial(_flat_on, sign), prescale=ONE_IN_TEN,
                  description=f"flat VELO tracks on side {side.upper()} where they cross x = 0")
        for side, sign in (("a", 1.0), ("c", -1.0))
    ),
)  # fmt: skip

# Distances of both halves from the collisions that both see; the medians are the offsets that conditions must have.
_HALVES = (
    *(
        Histogram(f"velo_halves_{name}", distance, 800, -4 * mm, 4 * mm, of=half_pairs,
                  description=f"vertices of VELO side A minus those of side C in {name[1]}")
        for name, distance in (("dx", lambda p: p.dx), ("dy", lambda p: p.dy), ("dz", lambda p: p.dz))
    ),
    Histogram("velo_halves_pairs", lambda e: e.n_half_pairs, 10, -0.5, 9.5, of=event,
              description="collisions of an event that both VELO halves see"),
)  # fmt: skip

_LARGE_CLUSTERS = (
    Histogram("velo_hit_pixels", lambda h: h.pixels, 20, 0.5, 20.5, of=_sized_hits, where=lambda h: h.pixels > 0,
              prescale=ONE_IN_TEN, description="pixels of the clusters of VELO tracks near the beam"),
)  # fmt: skip

_LONG = (
    Histogram("long_p", lambda t: t.p, 50, 0, 100 * GeV, of=long_tracks, description="momentum of a long track"),
    Histogram("long_pt", lambda t: t.pt, 50, 0, 5 * GeV, of=long_tracks, description="pt of a long track"),
    Histogram("long_eta", lambda t: t.eta, 40, 1.5, 5.5, of=long_tracks, prescale=ONE_IN_TEN,
              description="pseudorapidity of a long track"),
    Histogram("long_phi", lambda t: t.phi, 36, -3.1416 * rad, 3.1416 * rad, of=long_tracks, prescale=ONE_IN_TEN,
              description="azimuth of a long track"),
    Histogram("long_chi2", lambda t: t.full_chi2, 50, 0, 5, of=long_tracks,
              description="chi2 of a long track per degree of freedom"),
    # Of both charges, for the polarity of the magnet: bins of equal |x| are compared.
    *(
        Histogram(f"long_x_{name}", lambda t: t._end_x, 32, -3.2 * m, 3.2 * m, of=long_tracks, where=where,
                  description=f"x of a {name} long track behind the SciFi tracker")
        for name, where in (("positive", lambda t: t.is_positive), ("negative", lambda t: ~t.is_positive))
    ),
    Histogram("long_ip_chi2", lambda t: log(t.ip_chi2), 50, -5, 10, of=long_tracks, where=lambda t: t.ip_chi2 > 0,
              prescale=ONE_IN_TEN, description="logarithm of the IP chi2 of a long track"),
)  # fmt: skip

_MASSES = (
    Histogram("phi_mass", lambda v: v.m_kk, 50, 990 * MeV, 1090 * MeV, of=displaced_vertices,
              where=lambda v: ~v.same_sign & (v.pt > 1 * GeV) & (v.min_ip_chi2 > 9),
              description="two displaced tracks of opposite charge as kaons"),
    Histogram("jpsi_mass", lambda v: v.m_mumu, 50, 2.7 * GeV, 3.5 * GeV, of=dimuons, where=lambda v: ~v.same_sign,
              description="two muons of opposite charge"),
)  # fmt: skip

HLT1_HISTOGRAMS = (
    *_EVENTS,
    *_VELO,
    *_BEAM,
    *_BEAM_OF_HALVES,
    *_HALVES,
    *_LARGE_CLUSTERS,
    *_LONG,
    *_MASSES,
    *_OCCUPANCIES,
    *_CHANNELS,
)
