"""luminosity_fill_counters: the counters of the luminosity summary, as they are stored."""

from hltnode.processing.algorithms.decode_odin import odin
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import ecal_adc, ecal_energy, ecal_geometry
from hltnode.processing.lhcb.luminosity.collections import (
    lumi_counters,
    lumi_scales,
    plume_adc,
    plume_over_threshold,
    plume_read,
)
from hltnode.processing.lhcb.muon.collections import long_is_muon, muon_station_offset, muon_tile
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, vertices
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_id
from hltnode.processing.lhcb.tracks.long.collections import long_count
from hltnode.processing.lhcb.velo.collections import beamline_state, track_backward, track_count, velo_geometry

fill_counters = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(
        lumi_scales,
        velo_geometry,
        ecal_geometry,
        odin,
        track_count,
        track_backward,
        *(beamline_state[name] for name in ("x", "y", "z", "tx", "ty")),
        pv_count,
        vertices,
        scifi_count,
        scifi_id,
        ecal_adc,
        ecal_energy,
        muon_station_offset,
        muon_tile,
        long_count,
        long_is_muon,
        plume_adc,
        plume_over_threshold,
        plume_read,
    ),
    updates=(event_flags,),
    writes=(lumi_counters,),
    # The fiducial region, docs/physics/luminosity.md.
    constants={"max_z": 300.0, "max_distance": 3.0},
)
"""mm: largest |z| and largest distance from the beam line of fiducial tracks and vertices."""
