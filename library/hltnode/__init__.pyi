from hltnode.analysis.arrays import iterate, process
from hltnode.analysis.chains import fields
from hltnode.analysis.event_file import Bank, Event, EventFile, SelectedCandidate
from hltnode.analysis.event_file import open_file as open
from hltnode.analysis.pictures import Picture, display
from hltnode.analysis.requests import ask
from hltnode.analysis.samples import cached_sample, simulate
from hltnode.analysis.studies import Rates, rates
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.event_files import EventFileError
from hltnode.processing.selection.studies.fields import Field

__all__ = [
    "BackendError",
    "Bank",
    "Event",
    "EventFile",
    "EventFileError",
    "Field",
    "Picture",
    "Rates",
    "SelectedCandidate",
    "__version__",
    "ask",
    "cached_sample",
    "display",
    "fields",
    "iterate",
    "open",
    "process",
    "rates",
    "simulate",
]

__version__: str
