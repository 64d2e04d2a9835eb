"""missing_detectors: flags events without a single bank of a detector that the sequence reconstructs."""

from hltnode.processing.framework.batch import event_flags, raw_banks
from hltnode.processing.framework.declaration import Algorithm, Grid

missing_detectors = Algorithm.beside(
    __file__,
    prefix="",
    grid=Grid.EVENTS,
    block_size=32,
    reads=(raw_banks,),
    updates=(event_flags,),
    constants={"velo": 1, "ut": 1, "scifi": 1, "muon": 1},
)
"""1: the detector must have banks in each event; 0: it may be missing, as in a run that excludes it."""
