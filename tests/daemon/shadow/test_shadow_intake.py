"""A shadow node at a tap that this test plays: each MEP is decided, or counted as lost with the reason."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.client.feeder import FeederRefusedError
from hltnode.client.mep import FeedMep
from hltnode.daemon.common.vocabulary import CloseReason, ShadowLoss
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.daemon.shadow.shadow_intake import MAX_LATE_MEPS, _packed
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.transport.decisions import MepDecision, decode_decisions
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.tap_message import (
    MEP,
    TapHeader,
    decode_tapped,
    encode_tap_header,
    encode_tapped_about,
)
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

EVENTS = 8
CHAIN = "lhcb"


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as context:
        yield context


class Tap:
    """The tap of a productive node."""

    def __init__(self, context: zmq.asyncio.Context) -> None:
        self.socket = context.socket(zmq.XPUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind("tcp://127.0.0.1:*")
        self.endpoint = self.socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.sequence = 0

    async def send(
        self,
        mep: FeedMep,
        *,
        run: int = RUN,
        missing: tuple[int, ...] = (),
        chain: str = CHAIN,
        content: bytes = b"",
        events_per_mep: int = EVENTS,
    ) -> None:
        mfps = [mfp for source, mfp in mep.mfps.items() if source not in missing]
        header = encode_tap_header(TapHeader(MEP, self.sequence, run, mep.mep, len(mfps)))
        self.sequence += 1
        about = encode_tapped_about(events_per_mep, missing, chain)
        await self.socket.send_multipart([header, content or encode_mep(mfps), about])


@asynccontextmanager
async def shadow(context: zmq.asyncio.Context, tmp_path: Path) -> AsyncIterator[tuple[Tap, Node]]:
    tap = Tap(context)
    config = make_config(
        tmp_path,
        shadow={"of": tap.endpoint},
        builder={"mep_timeout_ms": 300, "max_mep_bytes": 64 * 1024, "overtaken_after_ms": 50, "min_feeders": 4},
    )
    try:
        async with running_node(config) as (node, _):
            await tap.socket.recv()
            yield tap, node
    finally:
        tap.socket.close()


async def test_meps_that_were_lost_on_the_way_are_counted_and_the_others_decided(
    context: zmq.asyncio.Context, tmp_path: Path
) -> None:
    async with shadow(context, tmp_path) as (tap, node):
        first, *meps = synthetic_meps(12, first=MAX_LATE_MEPS + 5)
        await tap.send(first)
        counters = node.counters.shadow
        with context.socket(zmq.SUB) as subscriber:
            subscriber.subscribe(b"shadow/testnode")
            subscriber.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers and counters.meps == 1)
            await tap.send(meps[0])
            tap.sequence += 3
            await tap.send(meps[1])
            await tap.send(meps[0])
            await tap.send(meps[2], chain="raw")
            await tap.send(meps[2], content=b"no MEP")
            [odd] = synthetic_meps(1, first=meps[2].mep, sources=(*SOURCES, 9000))
            await tap.send(odd)
            [old] = synthetic_meps(1, first=2)
            await tap.send(old)
            await tap.socket.send_multipart([b"what is this?"])
            await tap.send(meps[3], missing=SOURCES[1:2])
            await tap.send(meps[4])
            await eventually(lambda: counters.meps == 5)
            taken: list[MepDecision] = []
            # The first MEP may have been decided before the subscription.
            while meps[4].mep not in {each.mep for each in taken}:
                topic, raw = await subscriber.recv_multipart()
                assert topic == b"shadow/testnode"
                taken += decode_decisions(raw)
        expected = {
            ShadowLoss.SLOW: 3,
            ShadowLoss.REPEATED: 1,
            ShadowLoss.FOREIGN: 2,
            ShadowLoss.DAMAGED: 2,
            ShadowLoss.LATE: 1,
            ShadowLoss.REFUSED: 0,
        }
        assert counters.lost == expected
        by_mep = {each.mep: each for each in taken if each.mep != first.mep}
        assert sorted(by_mep) == [meps[0].mep, meps[1].mep, meps[3].mep, meps[4].mep]
        incomplete = by_mep[meps[3].mep]
        assert (incomplete.missing_sources, incomplete.close_reason) == (SOURCES[1:2], CloseReason.OVERTAKEN)
        assert {each.close_reason for each in taken} - {CloseReason.OVERTAKEN} == {CloseReason.COMPLETE}
    assert closes(accounting(node.counters, node.builder))
    assert node.counters.meps_acknowledged == 5


async def test_a_shadow_follows_the_run_of_the_productive_node_and_may_decide_again(
    context: zmq.asyncio.Context, tmp_path: Path
) -> None:
    for _session in range(2):
        async with shadow(context, tmp_path) as (tap, node):
            for run in (RUN, RUN + 1):
                for mep in synthetic_meps(3):
                    await tap.send(mep, run=run)
                await eventually(lambda run=run: node.builder.run == run and node.counters.shadow.meps % 3 == 0)  # type: ignore[misc]
            await eventually(lambda: node.counters.meps_acknowledged == 6)
            assert not any(node.counters.shadow.lost.values())
        assert not list((tmp_path / "out").glob("*.mdf*"))


async def test_a_refused_run_does_not_delay_the_next_one_whose_first_mep_may_lack_a_source(
    context: zmq.asyncio.Context, tmp_path: Path
) -> None:
    async with shadow(context, tmp_path) as (tap, node):
        counters = node.counters.shadow
        first, second = synthetic_meps(2)
        # More events than a batch of this node has.
        await tap.send(first, events_per_mep=65_535)
        await tap.send(second, events_per_mep=65_535)
        await eventually(lambda: counters.lost[ShadowLoss.REFUSED] == 2)
        await tap.send(first, run=RUN + 1, missing=SOURCES[1:2])
        await tap.send(second, run=RUN + 1)
        await eventually(lambda: node.counters.meps_acknowledged == 2)
        assert {reason: n for reason, n in counters.lost.items() if n} == {ShadowLoss.REFUSED: 2}


def test_a_mep_of_exactly_the_largest_sizes_is_packed() -> None:
    [mep] = synthetic_meps(1)
    mfps = list(mep.mfps.values())
    parts = [
        encode_tap_header(TapHeader(MEP, 0, RUN, mep.mep, len(mfps))),
        encode_mep(mfps),
        encode_tapped_about(EVENTS, (), CHAIN),
    ]
    tapped = decode_tapped(parts)
    assert tapped is not None
    nbytes, largest = sum(map(len, mfps)), HEADER_SIZE + max(map(len, mfps))
    assert set(_packed(tapped, nbytes, largest).sources) == set(SOURCES)
    with pytest.raises(ValueError, match=f"{nbytes} bytes of MFPs, builder.max_mep_bytes allows {nbytes - 1}"):
        _packed(tapped, nbytes - 1, largest)
    with pytest.raises(ValueError, match=f"a frame of {largest} bytes, network.max_frame_bytes allows {largest - 1}"):
        _packed(tapped, nbytes, largest - 1)


async def test_a_shadow_takes_no_other_feeder(context: zmq.asyncio.Context, tmp_path: Path) -> None:
    async with shadow(context, tmp_path) as (tap, node):
        async with make_feeder(context, node) as feeder:
            with pytest.raises(FeederRefusedError, match="is a shadow of another node and takes no feeders"):
                await feeder.welcomed()
        [mep] = synthetic_meps(1)
        await tap.send(mep)
        await eventually(lambda: node.counters.meps_acknowledged == 1)
        await asyncio.sleep(0)


async def test_meps_with_gaps_leave_no_range_behind_for_each(context: zmq.asyncio.Context, tmp_path: Path) -> None:
    meps = [mep for first in range(0, 20 * 500, 500) for mep in synthetic_meps(1, first=first)]
    async with shadow(context, tmp_path) as (tap, node):
        for mep in meps[:-1]:
            await tap.send(mep)
        intake = node._sockets.shadow
        assert intake is not None
        await eventually(lambda: node.counters.meps_acknowledged == len(meps) - 1)
        feeder = intake._feeder
        assert feeder is not None
        await eventually(lambda: feeder.window.unacknowledged == 0)
        # The next hello confirms what is acknowledged below the floor of late MEPs.
        await eventually(lambda: feeder.window.confirmed == feeder.window.next_mep - MAX_LATE_MEPS)
        # The highest MEP that is too late, and the lowest that is not: the tap has sent neither before.
        for mep in synthetic_meps(2, first=feeder.window.confirmed - 1):
            await tap.send(mep)
        await eventually(lambda: node.counters.meps_acknowledged == len(meps))
        assert node.counters.shadow.lost[ShadowLoss.LATE] == 1
        await tap.send(meps[-1])
        await eventually(lambda: node.counters.meps_acknowledged == len(meps) + 1)
        await eventually(lambda: feeder.window.unacknowledged == 0)
        # One range up to the floor, and the MEPs above it.
        above = [mep.mep for mep in meps if mep.mep >= feeder.window.next_mep - MAX_LATE_MEPS - 500]
        assert 1 < len(feeder.window.acked._first) <= 1 + len(above)
        assert 0 in feeder.window.acked
