"""The memory socket: the node reads valid ranges of all kinds of feeders and ends other connections."""

import array
import asyncio
import mmap
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hltnode.daemon._native import FragmentIntake, OpenMeps, Outcome, SenderAnswers, SourceTable
from hltnode.daemon.configuration.input_sections import SharedMemorySection
from hltnode.daemon.monitoring.counters import SharedMemoryCounters
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.shared_memory import receiver as receiver_module
from hltnode.daemon.shared_memory.receiver import MAX_UNATTACHED, MemoryReceiver
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import encode_frame
from hltnode.protocol.transport.shared_memory import (
    FRAME_ALIGNMENT,
    MAX_RANGES_OF_A_MESSAGE,
    Attach,
    Attached,
    Detach,
    MemoryMessage,
    MemoryRefusal,
    Refused,
    decode_memory_message,
    encode_memory_message,
    encode_ranges,
)
from tests.daemon.fakes import eventually
from tests.daemon.shared_memory.memory_files import memory_file

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

PAGE = mmap.PAGESIZE
NBYTES = 4 * PAGE
SECOND = 1_000_000_000


def frame_of(source: int, mep: int = 0, size: int = 100) -> bytes:
    mfp = encode_mfp(source_id=source, event_id=mep, version=1, types=[1], fragments=[bytes(size)])
    return encode_frame(mfp, run=1, mep_id=mep, source_id=source)


def one_behind_the_other(frames: list[bytes]) -> bytes:
    return b"".join(frame.ljust(-(-len(frame) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT, b"\0") for frame in frames)


class Bench:
    """A memory socket whose node knows the feeders a, b, ... of session s, and the frames that it has read."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.path = directory / "memory.sock"
        self.settings = SharedMemorySection.model_validate({"socket": self.path, **settings})
        self.counters = SharedMemoryCounters()
        self.read: list[bytes] = []
        self.now = 0
        self.clock = ReadingClock(lambda: self.now)
        self.intake = FragmentIntake(OpenMeps(1, 1), SenderAnswers(), SourceTable(), [], 0)
        self.intake.is_on = False
        self.receiver = self.make()
        self.receiver.start(asyncio.get_running_loop())

    def make(self) -> MemoryReceiver:
        return MemoryReceiver(
            self.path,
            self.settings,
            lambda name, session: len(name) == 1 and session == "s",
            self.take,
            lambda: self.clock,
            self.counters,
            lambda: self.now,
        )

    def take(self, frames: memoryview, at: int, end_ns: int) -> int:
        while True:
            outcome, begin, end, at = self.intake.take_range(frames, at, 0, 0, end_ns)
            if outcome is not Outcome.LEFT:
                return at
            self.read.append(bytes(frames[begin:end]))

    def refused(self) -> dict[MemoryRefusal, int]:
        return {reason: count for reason, count in self.counters.refused.items() if count}


class Peer:
    """A feeder, or something else, at the memory socket."""

    def __init__(self, bench: Bench) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self.socket.connect(str(bench.path))

    def send(self, raw: bytes, *files: int) -> None:
        socket.send_fds(self.socket, [raw], list(files))

    def attach(self, file: int, name: str = "a", session: str = "s", nbytes: int = NBYTES) -> None:
        self.send(encode_memory_message(Attach(name, session, nbytes)), file)

    async def answer(self) -> MemoryMessage | None:
        """The next message of the node, None at the end of the connection."""
        came: list[bytes] = []

        def is_there() -> bool:
            try:
                came.append(self.socket.recv(1 << 16))
            except BlockingIOError:
                return False
            except ConnectionResetError:
                came.append(b"")
            return True

        await eventually(is_there)
        return decode_memory_message(came[0]) if came[0] else None

    async def refusal(self) -> MemoryRefusal:
        answer = await self.answer()
        assert isinstance(answer, Refused), answer
        assert await self.answer() is None
        self.socket.close()
        return answer.reason


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**settings: object) -> Bench:
        made.append(Bench(tmp_path, **settings))
        return made[-1]

    yield make
    for each in made:
        each.receiver.close()


async def test_adjacent_and_separate_frames_are_read_in_place(bench: Callable[..., Bench]) -> None:
    node = bench()
    frames = [frame_of(source, size=10 * source) for source in range(1, 40)]
    packed = one_behind_the_other(frames[:20])
    alone = b"".join(frame.ljust(512, b"\0") for frame in frames[20:])
    with memory_file(NBYTES, content=packed + alone) as file:
        peer = Peer(node)
        peer.attach(file)
        assert await peer.answer() == Attached()
        assert (node.counters.segments, node.counters.bytes) == (1, NBYTES)
        peer.send(
            encode_ranges(
                [(0, len(packed)), *((len(packed) + 512 * i, len(frame)) for i, frame in enumerate(frames[20:]))]
            )
        )
        await eventually(lambda: len(node.read) == len(frames))
        assert node.read == frames
        assert node.counters.range_messages == 1
        peer.send(encode_memory_message(Detach()))
        peer.socket.close()
        await eventually(lambda: node.counters.segments == 0)
    assert node.counters == SharedMemoryCounters(range_messages=1)


async def test_a_feeder_that_ends_without_goodbye_is_counted_and_its_memory_is_released(
    bench: Callable[..., Bench], capsys: pytest.CaptureFixture[str]
) -> None:
    node = bench()
    frame = frame_of(1)
    with memory_file(NBYTES, content=frame) as file:
        peer = Peer(node)
        peer.attach(file)
        assert await peer.answer() == Attached()
        assert "memfd:test" in Path("/proc/self/maps").read_text()
        peer.send(encode_ranges([(0, len(frame))]))
        peer.socket.close()
    # Its earlier messages are read, although its own descriptor of the memory is closed.
    await eventually(lambda: node.counters.left == 1)
    assert node.read == [frame]
    assert (node.counters.segments, node.counters.bytes) == (0, 0)
    assert "memfd:test" not in Path("/proc/self/maps").read_text()
    out = capsys.readouterr()
    assert "shared_memory_left" in out.out + out.err


async def test_a_feeder_that_is_silent_for_half_a_minute_continues_where_it_was(bench: Callable[..., Bench]) -> None:
    node = bench()
    frame = frame_of(1)
    with memory_file(NBYTES, content=frame) as file:
        peer = Peer(node)
        peer.attach(file)
        assert await peer.answer() == Attached()
        for _ in range(600):
            node.now += SECOND // 20
            assert node.receiver.read()
        peer.send(encode_ranges([(0, len(frame))]))
        await eventually(lambda: node.read == [frame])
        peer.socket.close()


async def test_a_new_connection_of_a_feeder_replaces_its_old_one(bench: Callable[..., Bench]) -> None:
    node = bench(max_segments=1)
    with memory_file(NBYTES) as file:
        old, new = Peer(node), Peer(node)
        old.attach(file)
        assert await old.answer() == Attached()
        new.attach(file)
        assert await new.answer() == Attached()
        assert await old.answer() is None
        assert node.counters.segments == 1
        assert node.counters.left == 0
        for peer in (old, new):
            peer.socket.close()


# Liars


async def test_a_feeder_that_has_not_said_hello_or_has_another_session_is_refused(bench: Callable[..., Bench]) -> None:
    node = bench()
    with memory_file(NBYTES) as file:
        for name, session in (("a", "other"), ("unknown", "s")):
            peer = Peer(node)
            peer.attach(file, name, session)
            assert await peer.refusal() is MemoryRefusal.UNKNOWN_FEEDER
    assert node.refused() == {MemoryRefusal.UNKNOWN_FEEDER: 2}


async def test_segments_above_the_limit_are_refused_from_any_feeder(bench: Callable[..., Bench]) -> None:
    node = bench(max_segments=3)
    files = len(os.listdir("/proc/self/fd"))
    with memory_file(NBYTES) as file:
        taken = [Peer(node) for _ in range(3)]
        for name, peer in zip("abc", taken, strict=True):
            peer.attach(file, name)
            assert await peer.answer() == Attached()
        for i in range(100):
            peer = Peer(node)
            peer.attach(file, "defgh"[i % 5])
            assert await peer.refusal() is MemoryRefusal.TOO_MANY
        assert node.counters.segments == 3
        for peer in taken:
            peer.socket.close()
        await eventually(lambda: node.counters.segments == 0)
    assert node.refused() == {MemoryRefusal.TOO_MANY: 100}
    assert len(os.listdir("/proc/self/fd")) == files


async def test_connections_without_a_segment_are_limited_and_end(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver_module, "ATTACH_SECONDS", 0.2)
    node = bench()
    peers = [Peer(node) for _ in range(MAX_UNATTACHED + 5)]
    reasons = [await peer.refusal() for peer in peers]
    assert reasons == [MemoryRefusal.LATE] * MAX_UNATTACHED + [MemoryRefusal.TOO_MANY] * 5


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        ([(NBYTES, 64)], MemoryRefusal.OUTSIDE),
        ([(0, NBYTES + 1)], MemoryRefusal.OUTSIDE),
        ([((1 << 64) - 64, 128)], MemoryRefusal.OUTSIDE),
        ([(0, 0)], MemoryRefusal.OUTSIDE),
        ([(0, 64), (32, 64)], MemoryRefusal.OUTSIDE),
    ],
)
async def test_a_range_outside_its_own_memory_ends_the_connection_of_the_feeder(
    bench: Callable[..., Bench], ranges: list[tuple[int, int]], reason: MemoryRefusal
) -> None:
    node = bench()
    with memory_file(NBYTES) as file:
        peer = Peer(node)
        peer.attach(file)
        assert await peer.answer() == Attached()
        peer.send(encode_ranges(ranges))
        assert await peer.refusal() is reason
    assert node.refused() == {reason: 1}
    assert node.counters.left == 0


async def test_overlapping_ranges_are_each_read(bench: Callable[..., Bench]) -> None:
    node = bench()
    frames = [frame_of(source) for source in range(3)]
    packed = one_behind_the_other(frames)
    second = -(-len(frames[0]) // FRAME_ALIGNMENT) * FRAME_ALIGNMENT
    with memory_file(NBYTES, content=packed) as file:
        peer = Peer(node)
        peer.attach(file)
        peer.send(encode_ranges([(0, len(packed)), (second, len(packed) - second), (0, len(frames[0]))]))
        await eventually(lambda: len(node.read) == 6)
        assert node.read == [*frames, *frames[1:], frames[0]]
        peer.socket.close()


async def test_frames_whose_length_leads_out_of_their_range_end_with_it(bench: Callable[..., Bench]) -> None:
    node = bench()
    frame = bytearray(frame_of(1))
    struct.pack_into("<I", frame, 12, 0xFFFFFFFF)
    with memory_file(NBYTES, content=bytes(frame)) as file:
        peer = Peer(node)
        peer.attach(file)
        peer.send(encode_ranges([(0, 256), (0, 48), (0, 47), (0, 1), (NBYTES - 64, 64)]))
        await eventually(lambda: len(node.read) == 5)
        assert [len(read) for read in node.read] == [256, 48, 47, 1, 48]
        peer.socket.close()


async def test_a_range_of_only_empty_frames_does_not_block_the_node(bench: Callable[..., Bench]) -> None:
    node = bench()
    with memory_file(4 << 20) as file:
        peer = Peer(node)
        peer.attach(file, nbytes=4 << 20)
        assert await peer.answer() == Attached()
        peer.send(encode_ranges([(0, 4 << 20)]))
        for _ in range(1000):
            if node.read:
                break
            await asyncio.sleep(0)
        # 65,536 frames: the loop has its turn long before the last one.
        assert 0 < len(node.read) < 65_536
        peer.socket.close()


async def test_an_invalid_message_ends_the_connection(bench: Callable[..., Bench]) -> None:
    node = bench()
    good = encode_ranges([(0, 64)])
    with memory_file(NBYTES) as file:
        attach = encode_memory_message(Attach("a", "s", NBYTES))
        first: list[tuple[bytes, tuple[int, ...]]] = [
            (b"\0", ()),
            (b"garbage", (file,)),
            (good, ()),
            (attach, ()),
            (attach, (file, file)),
            (attach + b"\0", (file,)),
            (bytes(20_000), ()),
            (encode_memory_message(Detach()), ()),
            (encode_memory_message(Attached()), (file,)),
        ]
        for raw, files in first:
            peer = Peer(node)
            peer.send(raw, *files)
            assert await peer.refusal() is MemoryRefusal.MALFORMED, raw[:40]
        then: list[tuple[bytes, tuple[int, ...]]] = [
            (attach, (file,)),
            (good, (file,)),
            (good + b"\0", ()),
            (good[:8], ()),
            (good[:6] + b"\0\0" + good[8:], ()),
            (good[:6] + (MAX_RANGES_OF_A_MESSAGE + 1).to_bytes(2, "little") + good[8:], ()),
            (encode_memory_message(Attached()), ()),
        ]
        for raw, files in then:
            peer = Peer(node)
            peer.attach(file)
            assert await peer.answer() == Attached()
            peer.send(raw, *files)
            assert await peer.refusal() is MemoryRefusal.MALFORMED, raw[:40]
    assert node.refused() == {MemoryRefusal.MALFORMED: len(first) + len(then)}


async def test_another_version_is_refused_by_name(bench: Callable[..., Bench]) -> None:
    node = bench()
    with memory_file(NBYTES) as file:
        attach = encode_memory_message(Attach("a", "s", NBYTES)).replace(b"\xa1v\x01", b"\xa1v\x02")
        peer = Peer(node)
        peer.send(attach, file)
        assert await peer.refusal() is MemoryRefusal.BAD_VERSION
        peer = Peer(node)
        peer.attach(file)
        assert await peer.answer() == Attached()
        ranges = bytearray(encode_ranges([(0, 64)]))
        ranges[4] = 2
        peer.send(bytes(ranges))
        assert await peer.refusal() is MemoryRefusal.BAD_VERSION


async def test_unexpected_descriptors_are_closed(bench: Callable[..., Bench]) -> None:
    node = bench()
    with memory_file(NBYTES) as file:
        before = len(os.listdir("/proc/self/fd"))
        for n in (2, 4, 100):
            peer = Peer(node)
            rights = array.array("i", [file] * n)
            peer.socket.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            assert await peer.refusal() is MemoryRefusal.MALFORMED
        assert len(os.listdir("/proc/self/fd")) == before


# The socket itself


async def test_only_the_user_of_the_node_may_use_the_socket(bench: Callable[..., Bench]) -> None:
    node = bench()
    assert stat.S_IMODE(node.path.stat().st_mode) == 0o600
    node.receiver.close()
    assert not node.path.exists()


async def test_the_socket_of_a_killed_node_is_replaced(bench: Callable[..., Bench], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(tmp_path / "memory.sock"))
    node = bench()
    with memory_file(NBYTES) as file:
        peer = Peer(node)
        peer.attach(file)
        assert await peer.answer() == Attached()
        peer.socket.close()


async def test_the_socket_of_another_node_and_other_files_are_not_replaced(
    bench: Callable[..., Bench], tmp_path: Path
) -> None:
    node = bench()
    with pytest.raises(OSError, match="another node listens there"):
        node.make()
    assert node.path.is_socket()
    node.receiver.close()
    node.path.write_text("precious")
    with pytest.raises(OSError, match="not a socket"):
        node.make()
    assert node.path.read_text() == "precious"
    node.path.unlink()
    node.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="not a socket"):
        node.make()


async def test_a_group_that_does_not_exist_is_named(bench: Callable[..., Bench]) -> None:
    with pytest.raises(OSError, match="no group 'nosuchgroup'"):
        bench(group="nosuchgroup")
