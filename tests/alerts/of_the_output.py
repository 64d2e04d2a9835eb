"""Scenarios with the disk, files and consumers."""

import asyncio
import time
import uuid

import zmq

from tests.alerts.of_the_input import one_feeder
from tests.alerts.scenarios import NODE_IS_DOWN, Steps, again_and_again, scenario
from tests.alerts.site import Site
from tests.attacks.raw_peer import RawPeer, frame

GIB = 1 << 30
SPACE_IS_LOW = {"HltnodeOutputSpaceLow": "a full disk has little space, too"}


@scenario("HltnodeDiskRefuses", "a file system without a free page", needs_mount=True, tolerated=SPACE_IS_LOW)
async def full_disk(site: Site) -> Steps:
    site.mount("20g")
    await one_feeder(site)
    yield
    site.fill()
    yield
    site.resize("20g")


@scenario(
    "HltnodeEventsDropped",
    "a full disk, and the policy drop_new",
    settings={"output": {"policy": "drop_new"}},
    needs_mount=True,
    tolerated={**SPACE_IS_LOW, "HltnodeDiskRefuses": "the cause"},
    # The events of a MEP need more than the page that is free.
    events=64,
)
async def drops_events(site: Site) -> Steps:
    site.mount("20g")
    await one_feeder(site)
    yield

    async def leave_one_page() -> None:
        # The journal fills a page in some seconds. Without another one, the node waits and drops nothing.
        site.fill(free_pages=1)
        await asyncio.sleep(0.5)

    async with again_and_again(leave_one_page):
        yield
    site.resize("20g")


@scenario("HltnodeOutputSpaceLow", "5 GiB are left", needs_mount=True, detection=6.0)
async def little_space(site: Site) -> Steps:
    site.mount("20g")
    await one_feeder(site)
    yield
    site.resize("5g")
    yield
    site.resize("20g")


@scenario("HltnodeOutputFullSoon", "200 MiB/s less, of 60 GiB", needs_mount=True, detection=20.0)
async def less_and_less(site: Site) -> Steps:
    site.mount("60g")
    await one_feeder(site)
    shrinking = True

    async def shrink() -> None:
        # By the time that has passed: a busy machine does not make it slower, and the forecast of seconds stays.
        begin = time.monotonic()
        while shrinking:
            site.resize(60 * GIB - int((time.monotonic() - begin) * (200 << 20)))
            await asyncio.sleep(1.0)

    yield
    task = asyncio.create_task(shrink())
    yield
    shrinking = False
    await task


@scenario("HltnodeConsumerStalled", "the consumer of the events ends", settings={"events": {"endpoint": "EXTRA"}})
async def consumer_gone(site: Site) -> Steps:
    context = zmq.Context[zmq.Socket[bytes]]()
    site.cleanups.append(lambda: context.destroy(linger=0))

    def consumer() -> "asyncio.Task[None]":
        async def drain() -> None:
            with context.socket(zmq.PULL) as socket:
                socket.connect(f"tcp://127.0.0.1:{site.extra_port}")
                while True:
                    if not socket.poll(0):
                        await asyncio.sleep(0.02)
                        continue
                    socket.recv_multipart()

        return asyncio.create_task(drain())

    await site.start()
    reading = consumer()
    await site.feed()
    await site.processed(50)
    yield
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    # The node waits only when the queue of the socket is full.
    site.feeders[0].rate = 200.0
    yield
    reading = consumer()
    site.cleanups.insert(0, reading.cancel)
    site.feeders[0].rate = 8.0


@scenario(
    "HltnodeDecisionDrops",
    "a subscriber that does not read",
    settings={"decisions": {"queue": 1}},
    detection=40.0,
    events=128,
)
async def slow_subscriber(site: Site) -> Steps:
    await one_feeder(site)
    yield
    # With small buffers, few decisions are enough: a rate that fills megabytes is dead time on a busy machine.
    peer = RawPeer(site.decisions_port, receive_bytes=4096).shake_hands(b"SUB")
    peer.send(frame(b"\x01"))
    yield
    peer.close()


@scenario(
    "HltnodeEventsMissing", "a file of acknowledged events is gone after a kill", detection=15.0, tolerated=NODE_IS_DOWN
)
async def file_gone(site: Site) -> Steps:
    await one_feeder(site)
    await site.processed(200)
    yield
    site.kill()
    site.part_files()[0].unlink()
    await site.start()
    yield
    await site.restart()


@scenario(
    "HltnodeEventsQuarantined",
    "a wrong byte in a file of acknowledged events after a kill",
    detection=15.0,
    tolerated={**NODE_IS_DOWN, "HltnodeEventsMissing": "the damaged events are acknowledged but missing"},
)
async def file_damaged(site: Site) -> Steps:
    await one_feeder(site)
    await site.processed(200)
    yield
    site.kill()
    path = site.part_files()[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    await site.start()
    yield
    await site.restart()


@scenario("HltnodeJournalDamaged", "wrong bytes in the journal after a kill", detection=15.0, tolerated=NODE_IS_DOWN)
async def journal_damaged(site: Site) -> Steps:
    await one_feeder(site)
    await site.processed(200)
    yield
    site.kill()
    [journal] = site.output.glob("*.journal")
    content = bytearray(journal.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
    journal.write_bytes(content)
    await site.start()
    yield
    await site.restart()


@scenario(
    "HltnodePowerCut",
    "a start with another boot id after a kill",
    needs_mount=True,
    detection=15.0,
    tolerated=NODE_IS_DOWN,
)
async def other_boot(site: Site) -> Steps:
    await one_feeder(site)
    yield
    site.kill()
    boot = site.directory / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    mount = f"mount --bind {boot} /proc/sys/kernel/random/boot_id"
    await site.start(("unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh"))
    yield
    await site.restart()
