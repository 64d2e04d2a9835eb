"""`hltnode replay` that records sent fragments with times, damaged fragments, and silences.

    python -m tests.soak.feeder_process LOG STARTED replay ...

A line of LOG is one JSON object: `{"fault", "run", "mep", "source"}` for a fragment that `--fault` drops, delays or
damages, or that left late because a busy machine held the process that had reordered it; `{"node", "begin", "end"}`
(CLOCK_MONOTONIC in seconds) for a time span without a message to a node, from the start of the process (STARTED);
`{"node", "ready"}` when the process starts to connect; `{"node", "sent", "run", "mep", "source"}` for each fragment.
"""

import json
import os
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hltnode.client.fault_injection import REORDER_NS, Fault, FaultInjector, FaultPlan
from hltnode.daemon.cli import app
from hltnode.daemon.replay import site
from hltnode.protocol.buffers import Buffer

# Run, MEP id and source in the header of a frame.
_RUN_MEP_SOURCE = struct.Struct("<8xI4xQ8xH")
# Faults that can make a fragment miss its MEP.
_HARMFUL = (Fault.DROP, Fault.CORRUPT, Fault.DELAY)
SILENCE_SECONDS = 0.3
# A reordered frame that was held for longer can miss its MEP: `builder.overtaken_after_ms` is 250.
HELD_NS = 150_000_000


class RecordingInjector(FaultInjector):
    """Writes a line before a fault takes effect; `seed` starts with the seed and the number of the node."""

    log = -1
    started_s = 0.0

    def __init__(self, plan: FaultPlan, seed: int | str) -> None:
        super().__init__(plan, seed)
        self._node = int(str(seed).split("/")[1])
        self._last_s = self.started_s
        self._write({"node": self._node, "ready": time.monotonic()})

    def take(self, now_ns: int, frame: Buffer) -> Sequence[Buffer]:
        now_s = time.monotonic()
        if now_s - self._last_s > SILENCE_SECONDS:
            self._write({"node": self._node, "begin": self._last_s, "end": now_s})
        self._last_s = now_s
        before = dict(self.counts)
        frames = super().take(now_ns, frame)
        run, mep, source = _RUN_MEP_SOURCE.unpack_from(frame)
        for fault in _HARMFUL:
            if self.counts[fault] > before[fault]:
                self._write({"fault": str(fault), "run": run, "mep": mep, "source": source})
        self._write({"node": self._node, "sent": now_s, "run": run, "mep": mep, "source": source})
        return frames

    def due(self, now_ns: int) -> list[Buffer]:
        for _, until_ns, frame in self._overtaken:
            if now_ns - (until_ns - REORDER_NS) > HELD_NS:
                run, mep, source = _RUN_MEP_SOURCE.unpack_from(frame)
                self._write({"fault": str(Fault.REORDER), "run": run, "mep": mep, "source": source})
        return super().due(now_ns)

    def _write(self, record: dict[str, object]) -> None:
        os.write(self.log, json.dumps(record).encode() + b"\n")


def install(log: Path, started_s: float) -> None:
    """Install the recorder in the feeders of this process."""
    RecordingInjector.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    RecordingInjector.started_s = started_s
    vars(site)["FaultInjector"] = RecordingInjector


if __name__ == "__main__":
    install(Path(sys.argv.pop(1)), float(sys.argv.pop(1)))
    app()
