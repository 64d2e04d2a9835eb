"""A feeder with a constant rate beside an attack: python -m tests.attacks.honest_feeder DATA CONTROL RATE [KEYS DATA].

It writes a line a quarter of a second, with the number of MEPs that the node has acknowledged, until it is killed.
"""

import itertools
import subprocess
import sys
import threading
import time
from pathlib import Path

from hltnode.client import Feeder, FeederIdentity, FeederKeys, FeedMep, load_client_keys
from hltnode.client.sockets import PLAIN
from tests.attacks.attacked_node import ROOT, AttackedNode
from tests.daemon.fakes import RUN, SOURCES, synthetic_meps

RATE = 200.0
"""MEPs a second: far below what a node takes, so that the rate shows the node and not the machine."""
SAMPLE_SECONDS = 0.25


def feed(data: int, control: int, rate: float, keys: FeederKeys = PLAIN) -> None:
    """Feed the node with these ports until the process is killed."""
    identity = FeederIdentity(name="honest", run=RUN, sources=SOURCES, events_per_mep=8, max_fragment_bytes=4096)
    with Feeder(f"tcp://127.0.0.1:{data}", f"tcp://127.0.0.1:{control}", identity=identity, keys=keys) as feeder:
        start = next_sample = time.monotonic()
        for number, mep in enumerate(_meps()):
            if (now := time.monotonic()) >= next_sample:
                print(number - feeder.unacknowledged, flush=True)
                next_sample = now + SAMPLE_SECONDS
            time.sleep(max(0.0, start + number / rate - now))
            feeder.offer(mep)


def _meps() -> "itertools.chain[FeedMep]":
    return itertools.chain.from_iterable(synthetic_meps(1000, first=first) for first in itertools.count(0, 1000))


class HonestFeeder:
    """The feeder as a process; `acknowledged` grows while the node serves it."""

    def __init__(self, attacked: AttackedNode, rate: float = RATE) -> None:
        line = [sys.executable, "-m", "tests.attacks.honest_feeder"]
        line += [str(attacked.data), str(attacked.control), str(rate)]
        if attacked.keys is not None:
            line += [str(attacked.keys), str(int(attacked.encrypt_data))]
        self._process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.acknowledged = 0
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def wait_until_served(self, seconds: float = 60.0) -> None:
        """Wait until the node has acknowledged some MEPs."""
        end = time.monotonic() + seconds
        while self.acknowledged < RATE / 4:
            if time.monotonic() > end:
                raise TimeoutError("the node does not serve the honest feeder")
            time.sleep(0.05)

    def rate_for(self, seconds: float) -> float:
        """MEPs a second that the node acknowledges, over the next seconds."""
        before = self.acknowledged
        time.sleep(seconds)
        return (self.acknowledged - before) / seconds

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.acknowledged = int(line)


def _keys(folder: Path, encrypts_data: bool) -> FeederKeys:
    mine = load_client_keys(folder / "node" / "node.key", folder / "feeders" / "feeder.key_secret")
    return FeederKeys(mine, data=encrypts_data)


if __name__ == "__main__":
    _given = _keys(Path(sys.argv[4]), sys.argv[5] == "1") if len(sys.argv) > 4 else PLAIN
    feed(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), _given)
