"""Feeds without end over shared memory, until it is killed: python -m tests.daemon.node.shared_memory_feeder."""

import sys
import time

from hltnode.client import Feeder, FeederIdentity, SharedMemory
from tests.daemon.fakes import RUN, SOURCES, synthetic_meps


def main(data: str, control: str) -> None:
    identity = FeederIdentity(name="killed", run=RUN, sources=SOURCES, events_per_mep=8, max_fragment_bytes=60_000)
    with Feeder(data, control, identity=identity, shared_memory=SharedMemory(1 << 20)) as feeder:
        for mep in synthetic_meps(1_000_000):
            feeder.offer(mep)
            time.sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
