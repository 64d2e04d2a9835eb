"""Errors of the tuning of cuts."""


class TuningError(ValueError):
    """The cuts cannot be tuned as asked; the message names the option, file, line or cut."""


class NotTunableError(TuningError):
    """A cut cannot be tuned; the message says why."""
