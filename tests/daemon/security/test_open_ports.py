"""What a client that reaches a port can do without keys. SECURITY.md lists these limits; only keys can change them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.daemon.common.vocabulary import EventStream
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.event_message import ACCEPTED
from hltnode.protocol.transport.feeder_messages import Credit, Hello, Welcome
from hltnode.protocol.transport.frame_header import encode_frame
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.daemon.fakes import RUN, SOURCES, eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


@pytest.mark.parametrize("recorded", [False, True])
async def test_frames_of_a_stranger_at_the_data_port_take_no_place_and_delay_no_feeder(
    tmp_path: Path, context: zmq.asyncio.Context, recorded: bool
) -> None:
    # With a recorder no frame is handled by compiled code.
    tap = f"ipc://{tmp_path}/tap"
    config = make_config(tmp_path, tap={"endpoint": tap})
    forged = list(synthetic_meps(40, seed=666))
    async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
        with context.socket(zmq.PUSH) as stranger, context.socket(zmq.SUB) as recorder:
            recorder.connect(tap)
            if recorded:
                recorder.subscribe(b"")
                await eventually(lambda: node.counters.tap.subscribers)
            await eventually(lambda: node.builder.run == RUN)
            stranger.connect(node.receiver.endpoint)
            # Ids to come: each of them would take a place that a MEP of the feeder needs.
            for mep in forged:
                mfp = mep.mfps[SOURCES[0]]
                await stranger.send(encode_frame(mfp, run=RUN, mep_id=mep.mep, source_id=SOURCES[0]))
            report = await feed_meps(synthetic_meps(40), [feeder])
            await eventually(lambda: node.counters.fragments_rejected[RejectReason.UNKNOWN_TOKEN] == 40)
        assert (report.meps, report.unacknowledged, report.resent) == (40, 0, 0)
        assert node.counters.meps_opened == 40
        assert node.counters.fragments_built == 40 * len(SOURCES)
        assert node.counters.nacks_sent == 0
        assert sum(node.counters.fragments_rejected.values()) == 40


async def test_a_stranger_that_says_hello_first_keeps_a_feeder_out_until_it_leaves(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        with context.socket(zmq.DEALER) as stranger:
            stranger.connect(node.control.endpoint)
            await stranger.send(encode_message(Hello("stranger", "s", RUN, SOURCES, 0, 8, 60_000, False)))
            assert isinstance(decode_message(await stranger.recv()), Welcome | Credit)
            async with make_feeder(context, node):
                refused = node.counters.hellos_refused
                await eventually(lambda: sum(refused[reason] for reason in HelloRefusal))
                assert not node.counters.fragments_received


async def test_a_stranger_on_a_push_socket_gets_events_of_its_consumer_and_reads_decisions(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    config = make_config(tmp_path, events={"endpoint": "tcp://127.0.0.1:*"})
    async with running_node(config) as (node, _):
        endpoint = node.outputs.events[EventStream.ACCEPTED].endpoint
        with context.socket(zmq.PULL) as consumer, context.socket(zmq.PULL) as stranger, context.socket(zmq.SUB) as sub:
            sub.subscribe(b"")
            sub.connect(node.publisher.endpoint)
            consumer.connect(endpoint)
            stranger.connect(endpoint)
            await eventually(lambda: node.counters.decisions.subscribers)
            async with make_feeder(context, node) as feeder:
                assert (await feed_meps(synthetic_meps(5), [feeder])).complete
            assert (await stranger.recv_multipart())[0].startswith(ACCEPTED)
            assert (await consumer.recv_multipart())[0].startswith(ACCEPTED)
            assert await sub.recv()
