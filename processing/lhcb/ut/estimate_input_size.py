"""ut_estimate_input_size: number of UT hits that the banks of each event announce."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.lhcb.ut.collections import ut_bound

estimate_input_size = Algorithm.beside(
    __file__,
    grid=Grid.EVENTS,
    block_size=64,
    reads=(raw_banks,),
    updates=(event_flags,),
    writes=(ut_bound,),
)
