"""What is wrong with a trigger configuration or with one of its lines."""


class TriggerConfigError(ValueError):
    """A trigger configuration that cannot be used; the message names the key."""


class HistogramError(TriggerConfigError):
    """A histogram that cannot be filled; the message names it, what is wrong, and the source position."""


class LineError(TriggerConfigError):
    """A selection line that cannot be used; the message names the line, what is wrong, and the source position."""
