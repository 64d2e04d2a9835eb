"""The tokens of the feeders: which frames the node accepts (no I/O, no clock)."""

import secrets

from hltnode.daemon._native import SenderAnswers
from hltnode.daemon.readout.run_feeders import Feeder, RunFeeders
from hltnode.protocol.errors import RejectReason


def new_token() -> int:
    """A random number of 64 bits, which a stranger cannot guess; never 0, which stands for no token."""
    return secrets.randbits(64) or 1


class FramePermissions:
    """The feeder of each token.

    A token belongs to one session of a feeder, in one run and one session of the node. It ends with a goodbye, with a
    new session of the feeder, when other feeders take its place, and with the run. A silent feeder keeps it.

    Compiled code remembers the answers of `refusal`, so that further frames of a peer cost no Python.
    """

    def __init__(self) -> None:
        self.answers = SenderAnswers()
        """The answers since feeders last came or left, for compiled code."""
        self._holders: dict[int, tuple[RunFeeders, Feeder]] = {}

    def give(self, run: RunFeeders, feeder: Feeder) -> None:
        """Give a token to a feeder without one."""
        if not feeder.token:
            feeder.token = new_token()
            self._holders[feeder.token] = run, feeder
            self.answers.hold(feeder.token)

    def end(self, feeder: Feeder) -> None:
        """End the token of a feeder that is forgotten."""
        self._holders.pop(feeder.token, None)
        self.answers.release(feeder.token)
        self.recheck()

    def recheck(self) -> None:
        """Check the next frame of every source again: feeders have come or left."""
        self.answers.forget()

    def refusal(self, token: int, run: int, source: int) -> RejectReason | None:
        """The reason to refuse a frame with this token, or None if it may be built.

        `answers` gets each refusal, for all frames to which it applies.
        """
        holder = self._holders.get(token)
        if holder is None:
            self.answers.refuse_unheld()
            return RejectReason.UNKNOWN_TOKEN
        feeders, feeder = holder
        if feeder.gone or feeder.replaced:
            self.answers.refuse_token(token)
            return RejectReason.UNKNOWN_TOKEN
        if feeders.run != run:
            self.answers.refuse_other_runs(token, feeders.run)
            return RejectReason.FOREIGN_SOURCE
        if not feeders.may_send(feeder, source):
            own = [each for each in feeder.hello.sources if feeders.may_send(feeder, each)]
            self.answers.refuse_other_sources(token, own)
            return RejectReason.FOREIGN_SOURCE
        return None
