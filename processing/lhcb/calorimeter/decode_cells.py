"""ecal_decode_cells: banks of the calorimeter to the ADC value of each cell, and the energy of the event."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.calorimeter.collections import (
    ecal_adc,
    ecal_cell_count,
    ecal_energy,
    ecal_energy_count,
    ecal_geometry,
    ecal_max_adc,
)

decode_cells = Algorithm.beside(
    __file__,
    prefix="ecal",
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks, ecal_geometry),
    updates=(event_flags,),
    writes=(ecal_adc, ecal_cell_count, ecal_energy, ecal_energy_count, ecal_max_adc),
    constants={"required": 1},
)
"""`required`: 1 if each event must have banks of the calorimeter, 0 if they may be missing."""
