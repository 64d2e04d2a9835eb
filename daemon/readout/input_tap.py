"""The tap of fragments: publishes the input for a recorder, and never delays the node.

Above the bound on waiting bytes, whole MEPs are dropped and counted. The tap sends the frames that ZeroMQ has received,
without a copy.
"""

from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.readout.tap_socket import TapSocket
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.tap_message import CLOSED, FRAGMENT, TapHeader

# Most dropped MEPs that are remembered until they are closed; more than a node has open.
MAX_DROPPED = 65_536


class InputTap(TapSocket):
    """The XPUB socket of the tap of fragments; arguments and errors as of `TapSocket`."""

    @property
    def has_recorder(self) -> bool:
        """True while a recorder has subscribed."""
        return self.has_reader

    def fragment_taken(self, frame: Buffer, run: int, mep: int) -> None:
        """Publish the frame of an accepted fragment."""
        if not self.has_recorder:
            return
        sequence = self._next()
        if (run, mep) in self._dropped:
            return
        if not self._has_room(len(frame)):
            self._drop(run, mep)
            return
        self._put(TapHeader(FRAGMENT, sequence, run, mep, 0), frame)
        self._pump()

    def mep_closed(self, run: int, record: MepRecord) -> None:
        """Publish the end of a MEP."""
        if not self.has_recorder:
            return
        sequence = self._next()
        if (run, record.mep) in self._dropped:
            del self._dropped[run, record.mep]
            return
        self._put(TapHeader(CLOSED, sequence, run, record.mep, record.n_fragments))
        self._counters.meps += 1
        # A send may have processed the subscription of a recorder that came or left.
        self.changed()

    def _left_by_all(self) -> None:
        self._dropped: dict[tuple[int, int], None] = {}

    def _drop(self, run: int, mep: int) -> None:
        self._dropped[run, mep] = None
        if len(self._dropped) > MAX_DROPPED:
            del self._dropped[next(iter(self._dropped))]
        self._dropped_mep(mep)
