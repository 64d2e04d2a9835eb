"""The tap of whole MEPs: publishes closed MEPs for shadow nodes, and never delays the node.

A closed MEP is copied once, out of its slot. Compiled code goes on to take the fragments, which it does not while the
tap of fragments has a recorder. A MEP that finds no room costs no copy.
"""

from collections.abc import Callable, Sequence

import zmq

from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.daemon.monitoring.counters import TapCounters
from hltnode.daemon.readout.tap_socket import TapSocket
from hltnode.protocol.raw_data.mep import mep_of_slot
from hltnode.protocol.transport.tap_message import MEP, TapHeader, encode_tapped_about


class MepTap(TapSocket):
    """The XPUB socket of the tap of whole MEPs; errors as of `TapSocket`.

    Args:
        buffers: the pinned input of each slot.
        events_per_mep: most events of a MEP of the current run.
        prescale: one MEP of this number is published: those whose id is a multiple of it.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        counters: TapCounters,
        buffers: Sequence[memoryview],
        events_per_mep: Callable[[], int],
        chain: str,
        *,
        prescale: int,
        buffer_bytes: int,
        prepare: Callable[[zmq.Socket[bytes]], None],
        clock_ns: Callable[[], int],
    ) -> None:
        super().__init__(context, endpoint, counters, buffer_bytes=buffer_bytes, prepare=prepare, clock_ns=clock_ns)
        self._buffers = buffers
        self._events_per_mep = events_per_mep
        self._chain = chain
        self._prescale = prescale

    def mep_closed(self, run: int, record: MepRecord) -> None:
        """Publish a closed MEP, whose fragments are still in its slot."""
        if not self.has_reader or record.mep % self._prescale or not record.n_fragments:
            return
        sequence = self._next()
        if not self._has_room(record.arrived.bytes):
            self._dropped_mep(record.mep)
            return
        self._put(
            TapHeader(MEP, sequence, run, record.mep, record.n_fragments),
            mep_of_slot(self._buffers[record.slot], record.fragments),
            encode_tapped_about(self._events_per_mep(), record.missing, self._chain),
        )
        self._counters.meps += 1
        # A send may have processed the subscription of a reader that came or left.
        self.changed()
