"""The HLT1 sequence: the algorithms in the order in which they run, and the engine that runs them."""

from hltnode.processing.backend.base import Backend
from hltnode.processing.batch import BatchLimits
from hltnode.processing.engine import Engine
from hltnode.processing.geometry import VeloGeometry
from hltnode.processing.hlt1.declaration import AlgorithmSequence
from hltnode.processing.hlt1.fragment_offsets import fragment_offsets
from hltnode.processing.trigger import TriggerConfig
