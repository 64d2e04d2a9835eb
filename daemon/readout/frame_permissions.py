"""The tokens of the feeders: which frames the node accepts (no I/O, no clock)."""

import secrets
from collections.abc import Callable

from hltnode.daemon.readout.run_feeders import Feeder, RunFeeders
from hltnode.protocol.errors import RejectReason


def new_token() -> int:
    """A random number of 64 bits, which a stranger cannot guess; never 0, which stands for no token."""
    return secrets.randbits(64) or 1


class FramePermissions:
    """The feeder of each token.

    A token belongs to one session of a feeder, in one run and one session of the node. It ends with a goodbye, with a
    new session of the feeder, when other feeders take its place, and with the run. A silent feeder keeps it.

    Compiled code remembers the sources and tokens of frames that have passed the check.

    Args:
        changed: called when a token may have lost its permission; compiled code must then forget what it remembers.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._holders: dict[int, tuple[RunFeeders, Feeder]] = {}

    def give(self, run: RunFeeders, feeder: Feeder) -> None:
        """Give a token to a feeder without one."""
        if not feeder.token:
            feeder.token = new_token()
            self._holders[feeder.token] = run, feeder

    def end(self, feeder: Feeder) -> None:
        """End the token of a feeder that is forgotten."""
        self._holders.pop(feeder.token, None)
        self.recheck()

    def recheck(self) -> None:
        """Check the next frame of every source again: feeders have come or left."""
        self._changed()

    def refusal(self, token: int, run: int, source: int) -> RejectReason | None:
        """The reason to refuse a frame with this token, or None if it may be built."""
        holder = self._holders.get(token)
        if holder is None:
            return RejectReason.UNKNOWN_TOKEN
        feeders, feeder = holder
        if feeder.gone or feeder.replaced:
            return RejectReason.UNKNOWN_TOKEN
        if feeders.run != run or not feeders.may_send(feeder, source):
            return RejectReason.FOREIGN_SOURCE
        return None
