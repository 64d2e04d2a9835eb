"""Scenarios of the UDP intake."""

import asyncio
import signal
import socket

from tests.alerts.scenarios import Steps, again_and_again, scenario
from tests.alerts.site import Site
from tests.daemon.udp.packets import EVENTS, SOURCES, packet

UDP = {
    "udp": {
        "endpoint": "UDP",
        "senders": [{"address": "127.0.0.2", "sources": list(SOURCES)}],
        "events_per_packet": EVENTS,
        "receive_bytes": 65_536,
        "max_datagram_bytes": 512,
    }
}
# More than the least receive buffer holds.
FLOOD = 2000


def sender(site: Site, address: str) -> socket.socket:
    """A socket that sends to the node from this address."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind((address, 0))
    opened.connect(("127.0.0.1", site.extra_port))
    site.cleanups.append(opened.close)
    return opened


@scenario("HltnodeDatagramsRefused", "a sender that is not listed", settings=UDP)
async def unknown_sender(site: Site) -> Steps:
    await site.start()
    stranger = sender(site, "127.0.0.3")
    yield

    async def send() -> None:
        stranger.send(packet(0, SOURCES[0]))
        await asyncio.sleep(0.1)

    async with again_and_again(send):
        yield


@scenario(
    "HltnodeDatagramsDropped",
    "the node is stopped for 0.2 s while datagrams arrive",
    settings=UDP,
    tolerated={"HltnodeDatagramsRefused": "the datagrams that are not dropped are damaged"},
)
async def stopped_node(site: Site) -> Steps:
    await site.start()
    listed = sender(site, "127.0.0.2")
    damaged = bytes(len(packet(0, SOURCES[0])))
    yield

    async def flood() -> None:
        site.signal(signal.SIGSTOP)
        try:
            for _ in range(FLOOD):
                listed.send(damaged)
            await asyncio.sleep(0.2)
        finally:
            site.signal(signal.SIGCONT)
        # The kernel reports the dropped ones with the next datagram.
        listed.send(damaged)
        await asyncio.sleep(0.8)

    async with again_and_again(flood):
        yield
