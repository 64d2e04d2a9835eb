"""Errors of a trigger configuration, its lines and histograms."""

from reprlib import Repr

_TEXT = Repr()
_TEXT.maxstring = _TEXT.maxother = 60


def shown(name: object) -> str:
    """A name for a message: unchanged if it is one short word, else quoted and shortened."""
    if isinstance(name, str) and name.isidentifier() and len(name) <= _TEXT.maxstring:
        return name
    return _TEXT.repr(name)


class TriggerConfigError(ValueError):
    """The trigger configuration is invalid; the message names the key."""


class HistogramError(TriggerConfigError):
    """A histogram is invalid; the message gives its name, the fault and the source position."""


class LineError(TriggerConfigError):
    """A selection line is invalid; the message gives its name, the fault and the source position."""


class ModelError(TriggerConfigError):
    """A model file, or the table of a model in a TCK document, is invalid; the message names the file and the fault."""


class ConditionsError(TriggerConfigError):
    """A folder of conditions is invalid, or has none for a run; the message names the file and the key, or the run."""
