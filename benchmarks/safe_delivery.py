"""The cost of safe delivery: CRC32C, acknowledgements and journal, on and off in turn.

The frames and the way to the slots are those of `receive_and_build`. On: the CRC32C of each frame is checked; of each
slot a journal line is written and forced to the disk as with fsync = "file", credits and acknowledgement are encoded
and sent to one feeder. Off: none of these. The ratio is on to off.
"""

import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import uvloop
import zmq

from benchmarks.measure import Result
from benchmarks.receive_and_build import FRAME_BYTES, KIB, RUN, SLOT_BYTES, rates_in_turn, receive_frames
from hltnode.daemon.common.mep_ranges import as_ranges
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.monitoring.counters import Counters, WriterCounters
from hltnode.daemon.node.malloc_tuning import keep_heap
from hltnode.daemon.readout.feeder_socket import ControlSocket
from hltnode.daemon.storage.event_files import FileKey, Piece, Row
from hltnode.daemon.storage.recovery import StoreSettings, take_over
from hltnode.protocol.transport.control_messages import encode_message
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Goodbye


def receive_safely(_frame_bytes: int, orders: Connection) -> None:
    """Node process with everything on."""
    keep_heap()
    buffers = [memoryview(bytearray(b"\1") * SLOT_BYTES) for _ in range(3)]
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    control = ControlSocket(context, "tcp://127.0.0.1:*", Counters(), lambda _socket: None)
    feeder = context.socket(zmq.DEALER)
    feeder.setsockopt(zmq.ROUTING_ID, b"feeder")
    feeder.connect(control.endpoint)
    feeder.send(encode_message(Goodbye("here")))
    time.sleep(0.2)
    with tempfile.TemporaryDirectory() as directory:
        settings = StoreSettings(max_file_bytes=1 << 31, max_file_events=1 << 20, fsync=FsyncPolicy.FILE)
        journal = take_over(Path(directory), "node", "session", WriterCounters(), settings, boot="").journal
        key = FileKey("node_session", RUN, EventStream.ACCEPTED, 1)

        def sealed(builder: EventBuilder, slot: int) -> None:
            meps = [mep.mep for mep in builder.pool.slots[slot].meps]
            journal.batch(RUN, as_ranges(meps), [(key, Piece(meps[0], 0, [Row(mep, 1, 1) for mep in meps]))])
            # As if the file were finished: it is only the journal that is measured.
            journal.content.forget(key)
            control.send((b"feeder",), Credit(RUN, builder.window.limit))
            control.send((b"feeder",), Ack(RUN, tuple(as_ranges(meps))))

        while True:
            n_frames = orders.recv()
            orders.send(uvloop.run(receive_frames(orders, n_frames, buffers, sealed)))


def receive_unsafely(_frame_bytes: int, orders: Connection) -> None:
    """Node process with everything off."""
    keep_heap()
    buffers = [memoryview(bytearray(b"\1") * SLOT_BYTES) for _ in range(3)]
    with patch("hltnode.daemon.readout.receiver.check_crc", lambda _header, _frame: None):
        while True:
            n_frames = orders.recv()
            orders.send(uvloop.run(receive_frames(orders, n_frames, buffers)))


def run(_shared: Path) -> Iterator[Result]:
    """Measure each frame size, off and on in turn."""
    for frame_bytes in FRAME_BYTES:
        without, with_all = rates_in_turn(frame_bytes, receive_unsafely, receive_safely)
        yield Result(
            f"CRC, acks and journal on, {frame_bytes // KIB} KiB frames",
            with_all,
            "frames/s",
            f"off: {without:,.0f} frames/s",
            with_all / without,
            0.9,
        )
