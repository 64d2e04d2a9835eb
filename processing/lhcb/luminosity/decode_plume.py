"""luminosity_decode_plume: the bank of PLUME to ADC values and over-threshold bits of its channels."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.luminosity.collections import plume_adc, plume_over_threshold, plume_read

decode_plume = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(plume_adc, plume_over_threshold, plume_read),
    constants={"required": 0},
    allowed={"required": range(2)},
)
"""`required`: 1 if each event must have a bank of PLUME, 0 if it may be missing."""
