"""The cost of safe delivery: acknowledgements and journal, on and off in turn, and CRC32C.

The frames and their path to the slots are those of `receive_and_build`. On: the journal records for each slot the
computing and the finished MEPs, with one event of each MEP in a file of each stream. It is forced when files are
finished (fsync = "file", the default). Credits and acknowledgements are encoded and sent to one feeder. The ratio is on
to off. CRC32C: an MFP is copied with its CRC32C, as in the node, and by the C library.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import uvloop
import zmq

from benchmarks.measure import Result, alternating_medians
from benchmarks.readout.receive_and_build import (
    FRAME_BYTES,
    KIB,
    RUN,
    RUNS,
    SLOT_BYTES,
    compare_receivers,
    make_frames,
    receive_frames,
    results,
)
from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.control_socket import ControlSocket
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.daemon.storage.event_files import FileKey, Piece, Row
from hltnode.daemon.storage.journal import Journal
from hltnode.daemon.storage.journal_content import JournalContent
from hltnode.daemon.storage.output_directory import OutputDirectory
from hltnode.protocol.fragment_frame import copy_mfp
from hltnode.protocol.transport.control_messages import encode_message
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Goodbye
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.mep_ranges import as_ranges

PREFIX = "node_session"
EVENT_BYTES = 1 << 16
# A slot holds 88 to 128 MiB. In production a file of 2 GiB covers many more slots, because most input is not kept.
BATCHES_PER_FILE = 4


class NodeJournal:
    """The journal of a node, used like by its compute and output threads."""

    def __init__(self, directory: Path) -> None:
        self._journal = Journal(
            OutputDirectory(directory), "node.journal", PREFIX, JournalContent(), boot="", fsync=FsyncPolicy.FILE
        )
        self._end = 0
        self._files = 0
        self._batches = 0

    def note_batch(self, meps: Sequence[int]) -> None:
        """Record that these MEPs were sealed, computed and written."""
        ranges = as_ranges(meps)
        self._journal.begin_batch(RUN, ranges)
        piece = Piece(self._end, 0, [Row(mep, 1, EVENT_BYTES) for mep in meps])
        keys = [FileKey(PREFIX, RUN, stream, self._files) for stream in EventStream]
        self._journal.batch(RUN, ranges, [(key, piece) for key in keys])
        self._end = piece.end
        self._batches += 1
        if self._batches % BATCHES_PER_FILE == 0:
            for key in keys:
                self._journal.finished(key)
            self._journal.force()
            for key in keys:
                self._journal.content.forget(key)
            self._files += 1
            self._end = 0


def receive_safely(frame_bytes: int, orders: Connection) -> None:
    """Node process with everything on."""
    keep_heap()
    buffers = [memoryview(bytearray(b"\1") * SLOT_BYTES) for _ in range(3)]
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    control = ControlSocket(
        context,
        "tcp://127.0.0.1:*",
        Counters(),
        ReadingClock(time.monotonic_ns),
        lambda _socket: None,
        ReceivedInput(),
    )
    feeder = context.socket(zmq.DEALER)
    feeder.setsockopt(zmq.ROUTING_ID, b"feeder")
    feeder.connect(control.endpoint)
    feeder.send(encode_message(Goodbye("here")))
    time.sleep(0.2)
    with tempfile.TemporaryDirectory() as directory:
        journal = NodeJournal(Path(directory))

        def sealed(builder: EventBuilder, slot: int) -> None:
            meps = [mep.mep for mep in builder.pool.slots[slot].meps]
            journal.note_batch(meps)
            control.send((b"feeder",), Credit(RUN, builder.window.limit))
            control.send((b"feeder",), Ack(RUN, tuple(as_ranges(meps))))

        while True:
            n_frames = orders.recv()
            orders.send(uvloop.run(receive_frames(orders, frame_bytes, n_frames, buffers, sealed)))


def copies_us(frame_bytes: int) -> tuple[float, float]:
    """Processor time of the copy of an MFP to a slot, with and without its CRC32C (µs)."""
    frames = make_frames(frame_bytes)[: SLOT_BYTES // (2 * frame_bytes)]
    slot = memoryview(bytearray(b"\1") * SLOT_BYTES)
    array = np.frombuffer(slot, np.uint8)
    mfps = [np.frombuffer(frame, np.uint8, offset=HEADER_SIZE) for frame in frames]

    def checked() -> float:
        begin = time.process_time()
        for i, frame in enumerate(frames):
            if not copy_mfp(frame, slot, i * frame_bytes):
                raise RuntimeError("a frame of this benchmark is damaged")
        return time.process_time() - begin

    def bare() -> float:
        begin = time.process_time()
        for i, mfp in enumerate(mfps):
            at = i * frame_bytes
            array[at : at + len(mfp)] = mfp
        return time.process_time() - begin

    with_crc, without = alternating_medians(checked, bare, RUNS)
    return with_crc / len(frames) * 1e6, without / len(frames) * 1e6


def receive_unsafely(frame_bytes: int, orders: Connection) -> None:
    """Node process with everything off."""
    keep_heap()
    buffers = [memoryview(bytearray(b"\1") * SLOT_BYTES) for _ in range(3)]
    while True:
        n_frames = orders.recv()
        orders.send(uvloop.run(receive_frames(orders, frame_bytes, n_frames, buffers)))


def run(_shared: Path) -> Iterator[Result]:
    """Measure each frame size, off and on in turn."""
    for frame_bytes in FRAME_BYTES:
        checked, bare = copies_us(frame_bytes)
        name = f"copy with CRC32C, {frame_bytes // KIB} KiB frames"
        yield Result(name, checked, "µs/frame", f"memcpy: {bare:,.2f} µs/frame", bare / checked, 0.9)
        found = compare_receivers(frame_bytes, receive_unsafely, receive_safely)
        yield from results("acks and journal on, ", "off", frame_bytes, found, 0.9)
