"""Feed a node with the data of a small experiment: a timing board and one detector board.

python examples/feed_custom_data.py tcp://127.0.0.1:5555 tcp://127.0.0.1:5556 --meps 10

The node builds events from any sources that a feeder announces. HLT1 reads the ODIN banks of the timing board; the
banks of the detector board go with the events into the files of the node. docs/formats/mfp.md describes the bytes of an
MFP.

This trigger configuration accepts the pulser events, and requires no VELO:

    [sequence]
    name = "velo"

    [sequence.missing_detectors]
    velo = 0

    [[lines]]
    type = "OdinEventType"
    name = "Hlt1Pulser"
    mask = 0x0400
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import zmq.asyncio

from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.mep import FeedMep
from hltnode.client.sockets import FeederSockets
from hltnode.daemon.replay.single_node import FeedReport, feed_meps
from hltnode.protocol import ODIN_SOURCE, USER_SUBDETECTORS, USER_TYPES, Odin, encode_mfp, encode_odin, source_id
from hltnode.protocol.raw_data.bank_types import BankType

TIMING_BOARD = ODIN_SOURCE
DETECTOR_BOARD = source_id(USER_SUBDETECTORS[0], 0)
DETECTOR_BANK = USER_TYPES[0]
DETECTOR_BANK_VERSION = 1
CHANNELS = 16
EVENTS_PER_MEP = 100
RUN = 7

EVENT_TYPE_PULSER = 0x0400
"""A bit of the ODIN event type."""
PULSER_PERIOD = 25


def make_meps(n: int) -> Iterator[FeedMep]:
    """`n` MEPs with events numbered from 0; every source delivers one fragment per event."""
    generator = np.random.default_rng(seed=1)
    for mep in range(n):
        first = mep * EVENTS_PER_MEP
        timing = [encode_odin(odin_of(event)).payload for event in range(first, first + EVENTS_PER_MEP)]
        pulse_heights = generator.exponential(100.0, (EVENTS_PER_MEP, CHANNELS)).astype("<f4")
        yield FeedMep.of_mfps(
            mep=mep,
            first_event=first,
            mfps={
                TIMING_BOARD: encode_mfp(
                    source_id=TIMING_BOARD,
                    event_id=first,
                    version=7,
                    types=[BankType.ODIN] * EVENTS_PER_MEP,
                    fragments=timing,
                ),
                DETECTOR_BOARD: encode_mfp(
                    source_id=DETECTOR_BOARD,
                    event_id=first,
                    version=DETECTOR_BANK_VERSION,
                    types=[DETECTOR_BANK] * EVENTS_PER_MEP,
                    fragments=[row.tobytes() for row in pulse_heights],
                ),
            },
        )


def odin_of(event: int) -> Odin:
    """The ODIN bank of an event: every 25th event is a pulser event."""
    return Odin(run=RUN, event_id=event, event_type=0 if event % PULSER_PERIOD else EVENT_TYPE_PULSER)


async def feed(data: str, control: str, n_meps: int) -> FeedReport:
    """Send MEPs to a node and wait until it acknowledges them. Raises FeederRefusedError."""
    identity = FeederIdentity(
        name="small-experiment",
        run=RUN,
        sources=(TIMING_BOARD, DETECTOR_BOARD),
        events_per_mep=EVENTS_PER_MEP,
        max_fragment_bytes=64 * 1024,
    )
    with zmq.asyncio.Context() as context:
        async with Feeder(FeederSockets(context, data, control), identity) as feeder:
            return await feed_meps(make_meps(n_meps), [feeder])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Feed a node with the data of a small experiment.")
    parser.add_argument("data", help="data endpoint of the node, such as tcp://127.0.0.1:5555")
    parser.add_argument("control", help="control endpoint of the node, such as tcp://127.0.0.1:5556")
    parser.add_argument("--meps", type=int, default=10, help="MEPs to send")
    options = parser.parse_args(arguments)
    report = asyncio.run(feed(options.data, options.control, options.meps))
    print(f"{report.meps} MEPs, {report.events} events, {report.fragments} fragments: acknowledged")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
