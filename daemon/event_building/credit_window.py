"""Credits as plain state: how many MEPs may come (no I/O, no clock)."""


class CreditWindow:
    """How many MEPs a feeder may have unacknowledged at this node: those that are there, and those that may still come.

    A level and not a list of ids, so that a supervisor can assign any MEP to any node: `outstanding` credits are backed
    by places in slots, `held` MEPs are in slots or with the outputs, and not acknowledged.
    """

    def __init__(self) -> None:
        self.held = 0
        self.outstanding = 0

    @property
    def limit(self) -> int:
        """MEPs that may be unacknowledged."""
        return self.held + self.outstanding

    def opened(self) -> None:
        """A MEP uses a credit."""
        self.held += 1
        self.outstanding -= 1

    def freed(self, meps: int) -> None:
        """MEPs are acknowledged, and the feeders will not count them any more: the limit falls with them."""
        self.held -= meps

    def raise_to(self, places: int, at_least: int) -> bool:
        """Let the outstanding credits follow the places; False when they would grow by less than ``at_least``."""
        if places - self.outstanding < at_least:
            return False
        self.outstanding = places
        return True
