"""A feeder with a constant rate beside an attack: python -m tests.attacks.honest_feeder JSON.

It writes a line a quarter of a second, with the number of MEPs that the node has acknowledged, the id below which all
are acknowledged, and its token. A number on its standard input is its last MEP: it finishes the run, and ends. Without
one it feeds until it is killed.
"""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hltnode.client import Feeder, FeederIdentity, FeederKeys, FeedMep, load_client_keys
from hltnode.client.sockets import PLAIN
from tests.attacks.attacked_node import ROOT, AttackedNode
from tests.daemon.fakes import RUN, SOURCES, synthetic_meps

RATE = 200.0
"""MEPs a second: far below what a node takes, so that the rate shows the node and not the machine."""
SAMPLE_SECONDS = 0.25
EVENTS_PER_MEP = 8


@dataclass(frozen=True, slots=True)
class Share:
    """What a feeder feeds: its name, its sources, the number of feeders of the run, and its first MEP."""

    name: str = "honest"
    sources: tuple[int, ...] = SOURCES
    feeders: int = 1
    first: int = 0


def feed(data: int, control: int, rate: float, share: Share, keys: FeederKeys = PLAIN) -> None:
    """Feed the node with these ports until the process is killed or told its last MEP."""
    identity = FeederIdentity(
        name=share.name,
        run=RUN,
        sources=share.sources,
        feeders=share.feeders,
        events_per_mep=EVENTS_PER_MEP,
        max_fragment_bytes=4096,
    )
    told: list[int] = []
    threading.Thread(target=lambda: told.extend(map(int, sys.stdin)), daemon=True).start()
    with Feeder(f"tcp://127.0.0.1:{data}", f"tcp://127.0.0.1:{control}", identity=identity, keys=keys) as feeder:

        def report(number: int) -> None:
            inner = feeder._feeder
            print(number - feeder.unacknowledged, inner.window.first_unacknowledged, inner.token, flush=True)

        start = next_sample = time.monotonic()
        for number, mep in enumerate(_meps(share), share.first):
            if (now := time.monotonic()) >= next_sample:
                report(number)
                next_sample = now + SAMPLE_SECONDS
            if told and number > told[0]:
                feeder.finish()
                report(number)
                return
            time.sleep(max(0.0, start + (number - share.first) / rate - now))
            feeder.offer(mep)


def _meps(share: Share) -> Iterator[FeedMep]:
    """The MEPs with its sources alone: to make the others would cost processor time that the node needs."""
    for block in itertools.count(share.first - share.first % 1000, 1000):
        for mep in synthetic_meps(1000, sources=share.sources, events=EVENTS_PER_MEP, first=block):
            if mep.mep >= share.first:
                yield mep


WHOLE = Share()


class HonestFeeder:
    """The feeder as a process; `acknowledged` grows while the node serves it."""

    def __init__(self, attacked: AttackedNode, rate: float = RATE, share: Share = WHOLE) -> None:
        line = [sys.executable, "-m", "tests.attacks.honest_feeder"]
        keys = None if attacked.keys is None else str(attacked.keys)
        line += [json.dumps([attacked.data, attacked.control, rate, asdict(share), keys, attacked.encrypt_data])]
        self.share = share
        self._process = subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.acknowledged = share.first
        self.below = share.first
        """The id below which all its MEPs are acknowledged."""
        self.token = 0
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def wait_until_served(self, seconds: float = 60.0) -> None:
        """Wait until the node has acknowledged some MEPs."""
        end = time.monotonic() + seconds
        while self.acknowledged < self.share.first + RATE / 4:
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
        assert self._process.stdin is not None
        self._process.stdout.close()
        self._process.stdin.close()

    def tell_last(self, mep: int) -> None:
        """Let it end the run after this MEP, which it must not have passed."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{mep}\n")
        self._process.stdin.flush()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until it has finished the run; False if it has not after these seconds, or has failed."""
        try:
            return self._process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A killed process may leave a part of a line.
            if line.endswith("\n"):
                self.acknowledged, self.below, self.token = map(int, line.split())


def _keys(folder: Path, encrypts_data: bool) -> FeederKeys:
    mine = load_client_keys(folder / "node" / "node.key", folder / "feeders" / "feeder.key_secret")
    return FeederKeys(mine, data=encrypts_data)


if __name__ == "__main__":
    _data, _control, _rate, _share, _folder, _encrypts = json.loads(sys.argv[1])
    _given = PLAIN if _folder is None else _keys(Path(_folder), _encrypts)
    feed(_data, _control, _rate, Share(**{**_share, "sources": tuple(_share["sources"])}), _given)
