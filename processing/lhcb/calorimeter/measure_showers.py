"""ecal_measure_showers: energy, place and shape of the shower around the cell that a long track crosses."""

from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import ecal_adc, ecal_geometry, long_ecal_cell, long_shower
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_state

measure_showers = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(ecal_geometry, ecal_adc, long_count, *long_state.values()),
    writes=(long_ecal_cell, *long_shower.values()),
)
