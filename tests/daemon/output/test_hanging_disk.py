"""A hung disk: kept events wait in memory up to a bound, and occupy slots only above it."""

import os
import threading
from pathlib import Path

import pytest
import zmq.asyncio

from hltnode.daemon.common.vocabulary import DeadTimeReason, SlotState
from hltnode.daemon.output.output_queue import MAX_BATCHES
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.protocol.raw_data.mdf import iter_records
from tests.daemon.fakes import eventually, make_config, make_feeder, running_node, synthetic_meps

SLOTS = 3


@pytest.fixture
def disk_works(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Writes to event files wait for this event; it is set at first."""
    works = threading.Event()
    works.set()
    write = os.write

    def write_when_it_works(descriptor: int, data: memoryview) -> int:
        if ".mdf" in os.readlink(f"/proc/self/fd/{descriptor}"):
            works.wait()
        return write(descriptor, data)

    monkeypatch.setattr("hltnode.daemon.storage.event_writer.os.write", write_when_it_works)
    return works


def event_numbers(directory: Path) -> list[int]:
    """The numbers of the synthetic events in all finished files."""
    return sorted(
        int.from_bytes(record.banks()[0].payload[:8], "little")
        for path in directory.glob("*.mdf")
        for record in iter_records(path.read_bytes())
    )


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_a_disk_that_hangs_holds_no_slots_until_the_output_queue_is_full(
    tmp_path: Path, disk_works: threading.Event
) -> None:
    config = make_config(tmp_path, pipeline={"slots": SLOTS, "max_events": 8, "flush_deadline_us": 1_000})
    meps = list(synthetic_meps(40))
    with zmq.asyncio.Context() as context:
        async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
            disk_works.clear()
            try:
                for mep in meps[:4]:
                    await feeder.offer(mep)
                await eventually(lambda: len(node.builder.unacknowledged_meps()) == 4)
                await eventually(lambda: node.builder.pool.by_state()[SlotState.FREE] == SLOTS)
                assert feeder.window.unacknowledged == 4
                assert node.status.full()["output_queue_bytes"] > 0
                offered = 4
                # Each batch is one MEP: those of the queue, and those that then stay in the slots.
                while node.counters.dead_time[DeadTimeReason.DISK] == 0.0:
                    if feeder.window.limit > offered:
                        await feeder.offer(meps[offered])
                        offered += 1
                    else:
                        await eventually(
                            lambda: (
                                node.counters.dead_time[DeadTimeReason.DISK] > 0.0 or feeder.window.limit > offered  # noqa: B023
                            )
                        )
                assert MAX_BATCHES < offered <= MAX_BATCHES + SLOTS
                assert node.builder.pool.by_state()[SlotState.FREE] == 0
            finally:
                disk_works.set()
            for mep in meps[offered:]:
                await feeder.offer(mep)
            await eventually(lambda: feeder.window.unacknowledged == 0)
            assert node.status.full()["output_queue_bytes"] == 0
    assert event_numbers(tmp_path / "out") == [n for n in range(320) if n % 2]


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
async def test_records_have_checksums_where_the_configuration_asks_for_them(tmp_path: Path) -> None:
    config = make_config(tmp_path, output={"checksums": True})
    with zmq.asyncio.Context() as context:
        async with running_node(config) as (node, _), make_feeder(context, node) as feeder:
            assert (await feed_meps(synthetic_meps(2), [feeder])).complete
    [path] = (tmp_path / "out").glob("*.mdf")
    assert all(record.header.checksum for record in iter_records(path.read_bytes()))
