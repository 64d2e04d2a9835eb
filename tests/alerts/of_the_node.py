"""Scenarios with the node itself: its process, back end, commands and connections."""

import asyncio
import contextlib
import signal
import socket

from hltnode.protocol.transport.feeder_messages import Revoked
from tests.alerts.scenarios import ANSWERS_ARE_NOT_SCALED, NODE_IS_DOWN, Steps, again_and_again, scenario
from tests.alerts.site import Site
from tests.attacks.raw_peer import RawPeer, subscribe
from tests.daemon.fakes import RUN


async def running(site: Site) -> None:
    """A node in a run with one feeder."""
    await site.start()
    await site.feed()
    await site.processed(50)


@scenario("HltnodeNodeDown", "SIGSTOP of the node", detection=ANSWERS_ARE_NOT_SCALED)
async def stopped(site: Site) -> Steps:
    await running(site)
    yield
    site.signal(signal.SIGSTOP)
    yield
    site.signal(signal.SIGCONT)


@scenario("HltnodeNodeDown", "SIGKILL of the node", detection=ANSWERS_ARE_NOT_SCALED)
async def killed(site: Site) -> Steps:
    await running(site)
    yield
    site.kill()
    yield
    await site.start()


@scenario("HltnodeRestartLoop", "SIGKILLs, each with a new start", detection=170.0, tolerated=NODE_IS_DOWN)
async def restarted(site: Site) -> Steps:
    await running(site)
    yield

    async def restart() -> None:
        site.kill()
        await site.start()
        # Every session is scraped at least once.
        await asyncio.sleep(2.0)

    async with again_and_again(restart):
        yield
    await site.restart()


@scenario("HltnodeStartHangs", "a back end that does not answer the first, empty batch")
async def start_hangs(site: Site) -> Steps:
    yield
    site.behave(hang=True)
    await site.start(ready=False)
    yield
    site.behave()


@scenario("HltnodeUnhealthy", "a back end that hangs", settings={"node": {"unhealthy_after_ms": 2000}}, detection=4.0)
async def hangs(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(hang=True)
    yield
    site.behave()


@scenario("HltnodeBackendErrors", "a batch that fails", tolerated=NODE_IS_DOWN)
async def batch_fails(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(fail=1)
    yield
    await site.restart()


@scenario(
    "HltnodeMepsNotProcessed",
    "two sessions killed while they compute a MEP",
    detection=30.0,
    tolerated={
        **NODE_IS_DOWN,
        "HltnodeRestartLoop": "two kills and the start that ends the alert are three starts in 15 minutes",
        "HltnodeDeadTimeHigh": "the second session hangs for the scaled two minutes, and no watchdog ends it",
    },
)
async def left_out(site: Site) -> Steps:
    await running(site)
    site.behave(hang=True)
    await asyncio.sleep(1.0)
    yield
    site.kill()
    # The second session warms up, gets the MEPs again, and computes each in a separate batch.
    site.behave()
    await site.start()
    site.behave(hang=True)
    await asyncio.sleep(6.0)
    site.kill()
    site.behave()
    await site.start()
    yield
    await site.restart()


@scenario("HltnodeDeadTimeHigh", "batches of 0.5 s, and MEPs as fast as they are taken", detection=6.0)
async def slow_back_end(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(seconds=0.5)
    site.feeders[0].rate = 2000.0
    yield
    site.behave()
    site.feeders[0].rate = 8.0


@scenario("HltnodeLatencyP99High", "batches of 1.5 s, and one MEP in three seconds")
async def slow_batches(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(seconds=1.5)
    site.feeders[0].rate = 0.6
    yield
    site.behave()
    site.feeders[0].rate = 8.0


def flagged(alert: str, flag: str) -> None:
    """Register the scenario of a flag that kernels set."""

    @scenario(alert, f"a back end that flags all events with {flag}")
    async def steps(site: Site) -> Steps:
        await running(site)
        yield
        site.behave(flag=flag)
        yield
        site.behave()


flagged("HltnodeEventsCut", "global_event_cut")
flagged("HltnodeDetectorMissing", "missing_detector")
flagged("HltnodeEventsTooLarge", "too_many_clusters")


@scenario("HltnodeDetectorConditionOff", "a beam that is 1 mm off, without vertices", detection=4.0)
async def beam_moved(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(beam_x=1.0, has_pv=False)
    yield
    site.behave()


@scenario("HltnodeChannelsOff", "an ASIC without hits", detection=4.0)
async def dead_channels(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(dead=True)
    yield
    site.behave()


@scenario("HltnodeNoPrimaryVertices", "events with tracks and no vertices", detection=4.0)
async def no_vertices(site: Site) -> Steps:
    await running(site)
    yield
    site.behave(has_pv=False)
    yield
    site.behave()


@scenario("HltnodeReloadRefused", "SIGHUP with a file that is not valid")
async def bad_reload(site: Site) -> Steps:
    await running(site)
    good = site.config.read_text()
    yield
    site.config.write_text(good + '\n[builder]\nfeeders = "many"\n')
    site.signal(signal.SIGHUP)
    yield
    site.config.write_text(good)


@scenario("HltnodeLoginsRefused", "commands over HTTP without a token")
async def no_token(site: Site) -> Steps:
    await running(site)
    yield

    async def attempt() -> None:
        await asyncio.to_thread(site.post, "/control/pause")
        await asyncio.sleep(0.3)

    async with again_and_again(attempt):
        yield


@scenario(
    "HltnodeConnectionsRefused",
    "60 connections where 8 are allowed",
    settings={"limits": {"connections_of_this_machine": 8}},
)
async def flood(site: Site) -> Steps:
    await running(site)
    yield

    async def connect() -> None:
        with contextlib.suppress(OSError):
            connections = [socket.create_connection(("127.0.0.1", site.data_port), 5) for _ in range(20)]
            await asyncio.sleep(1.0)
            for connection in connections:
                connection.close()

    async with again_and_again(connect):
        yield


@scenario("HltnodeAddressesRefused", "a consumer that sends subscriptions without end")
async def endless_subscriptions(site: Site) -> Steps:
    await running(site)
    yield

    async def subscribe_again() -> None:
        await asyncio.to_thread(_subscribe_without_end, site.decisions_port)
        await asyncio.sleep(1.0)

    async with again_and_again(subscribe_again):
        yield


def _subscribe_without_end(port: int) -> None:
    # While the address is refused, no connection is made.
    with contextlib.suppress(OSError), RawPeer(port, "127.0.0.2").shake_hands(b"SUB") as peer:
        while peer.send(subscribe(bytes(100)) * 100):
            pass


@scenario("HltnodeRevocationRefused", "a feeder that revokes MEPs and does not supervise")
async def revocation(site: Site) -> Steps:
    await running(site)
    yield

    async def revoke() -> None:
        await site.feeders[0].connection.send_message(Revoked(RUN, ((0, 1),)))
        await asyncio.sleep(1.0)

    async with again_and_again(revoke):
        yield
