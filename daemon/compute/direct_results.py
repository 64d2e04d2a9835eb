"""Results of MEPs that a thread decides before the compute thread has them."""

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.compute.engine_interface import DirectWorkspace


class DirectResults:
    """A workspace for direct decisions, and the histogram counts of those MEPs whose results are used.

    The other MEPs are computed again the usual way. Each computation ends with `keep` or `drop`, before the next one
    begins. `keep` and `take_histogram_counts` do not run at the same time.
    """

    def __init__(self, workspace: DirectWorkspace) -> None:
        self.workspace = workspace
        self._counts = workspace.take_histogram_counts()

    def keep(self) -> None:
        """Count the entries of the last computation."""
        self._counts = self._counts + self.workspace.take_histogram_counts()

    def drop(self) -> None:
        """Forget the entries of the last computation."""
        self.workspace.take_histogram_counts()

    def take_histogram_counts(self) -> NDArray[np.uint32]:
        """The kept counts since the last call."""
        taken, self._counts = self._counts, np.zeros_like(self._counts)
        return taken
