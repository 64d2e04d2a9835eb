"""The runs of a soak: three feeder processes feed both nodes; at their end the next run starts at once."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.protocol.errors import RejectReason
from tests.soak.absences import FeederRecords
from tests.soak.content import EVENTS_PER_MEP, FEEDERS
from tests.soak.nodes import SoakNode

FIRST_RUN = 4201
WIRE_FAULTS = "drop=0.0005,duplicate=0.005,reorder=0.02,corrupt=0.002,delay=0.001"
PASSABLE = (RejectReason.LATE, RejectReason.BAD_CRC)


class Runs:
    """Starts the feeders of one run after the other. `meps` yields the length of each run in MEPs."""

    def __init__(
        self, directory: Path, nodes: Sequence[SoakNode], meps: Iterator[int], *, rate: float, seed: int, wire: bool
    ) -> None:
        self.feeders: dict[int, subprocess.Popen[bytes]] = {}
        self.starts = 0
        self.fed: dict[int, int] = {}
        """Number of MEPs of each started run."""
        self.problems: list[str] = []
        self.last_restart = 0.0
        self.ended: dict[int, float] = {}
        """Time at which the last feeder of each run ended."""
        self.run = FIRST_RUN - 1
        self._started: dict[int, float] = {}
        self._directory = directory
        self._nodes = nodes
        self._lengths = meps
        self._meps: dict[int, int] = {}
        self._rate = rate
        self._seed = seed
        self._wire = wire
        self._supervisor = f"tcp://127.0.0.1:{free_ports(1)[0]}"
        self._writing: dict[int, subprocess.Popen[bytes]] = {}
        self._killed: set[int] = set()
        self._ended: set[int] = set()
        """Feeders whose exit code is ignored."""
        self._restarted: set[int] = set()
        self._records: dict[int, Path] = {}
        self._prepare(FIRST_RUN)

    @property
    def last_mep(self) -> int:
        """The last MEP of the current run."""
        return self.fed[self.run] - 1

    def start_next(self) -> None:
        """Start the feeders of the next run."""
        self.run += 1
        self.fed[self.run] = self._meps[self.run]
        if self._writing.pop(self.run).wait() != 0:
            raise RuntimeError(f"the input of run {self.run} could not be written")
        self._killed.clear()
        self._ended.clear()
        self._restarted.clear()
        self._started[self.run] = time.monotonic()
        for number in range(1, FEEDERS + 1):
            self.start_feeder(number)
        self._prepare(self.run + 1)

    def start_feeder(self, number: int) -> None:
        """Start feeder `number` (from 1) at the first MEP of the run; faults differ from start to start."""
        self.starts += 1
        name = f"feeder{number}.run{self.run}.start{self.starts:04}"
        self._records[number] = self._directory / f"{name}.records"
        to = [part for node in self._nodes for part in ("--to", node.data, "--control", node.control)]
        wire = ["--fault", WIRE_FAULTS if self._wire else "duplicate=0.0"]
        command = [
            sys.executable, "-m", "tests.soak.feeder_process",
            str(self._records[number]), str(time.monotonic()), "replay", "--wait", *to,
            "--supervisor", self._supervisor, "--part", f"{number}/{FEEDERS}",
            str(self._input(self.run)), "--run", str(self.run), "--name", "soak",
            "--rate", str(self._rate), *wire, "--seed", str(self._seed * 1000 + self.starts),
            "--json", str(self._report(number)),
        ]  # fmt: skip
        if number == 1:
            command += ["--memory", str(self._directory / f"run{self.run}.assignments")]
        with (self._directory / f"{name}.log").open("wb") as log:
            self.feeders[number] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill_feeder(self, number: int) -> None:
        """Send SIGKILL."""
        self._killed.add(number)
        self.feeders[number].kill()
        self.feeders[number].wait()

    def restart_feeder(self, number: int) -> None:
        """Start a killed feeder again, unless it had written its report: then it had already finished its run."""
        self._killed.discard(number)
        if self._report(number).exists():
            self._ended.add(number)
        else:
            self._restarted.add(number)
            self.last_restart = time.monotonic()
            self.start_feeder(number)

    def are_left_behind(self) -> bool:
        """Whether all running feeders were killed and restarted, and all others have ended.

        A feeder that was killed between its last confirmation and the end of its process waits for a finished run: an
        operator has to close the run.
        """
        running = self.running()
        return bool(running) and len(running) < FEEDERS and all(number in self._restarted for number in running)

    def excuse_running(self) -> int:
        """Ignore the exit codes of the running feeders, whose run will be closed; returns their number."""
        running = self.running()
        self._restarted.difference_update(running)
        self._ended.update(running)
        return len(running)

    def give_up(self) -> list[int]:
        """Kill the feeders of a run that does not end; returns their numbers."""
        running = self.running()
        for number in running:
            self.feeders[number].kill()
            self.feeders[number].wait()
            self._ended.add(number)
        return running

    def running(self) -> list[int]:
        """Numbers of the feeders that still feed."""
        return [number for number, process in self.feeders.items() if process.poll() is None]

    def is_ready(self, number: int) -> bool:
        """Whether a feeder feeds; False while its process only starts."""
        records = self._records.get(number)
        return number in self.running() and records is not None and records.exists() and records.stat().st_size > 0

    @property
    def is_over(self) -> bool:
        """Whether all feeders of the current run have ended; records those that report a failure."""
        if self.running() or self._killed:
            return False
        for number, process in self.feeders.items():
            if process.returncode and number not in self._ended and (why := self._failure(number)):
                code = process.returncode
                self.problems.append(f"feeder {number} of run {self.run} ended with exit code {code}: {why}")
        self.feeders.clear()
        self.ended[self.run] = time.monotonic()
        self._input(self.run).unlink(missing_ok=True)
        return True

    def reports(self) -> list[dict[str, Any]]:
        """The final reports of the feeders, with their run."""
        reports = []
        for path in sorted(self._directory.glob("feeder*.json")):
            run = int(path.name.split(".run")[1].split(".")[0])
            reports.append({"run": run, **json.loads(path.read_text())})
        return reports

    def spans(self) -> dict[int, tuple[float, float]]:
        """Start and end of each run that is over."""
        return {run: (self._started[run], end) for run, end in self.ended.items()}

    def records(self) -> FeederRecords:
        """The records of all feeder processes."""
        records = FeederRecords()
        for path in sorted(self._directory.glob("feeder*.records")):
            records.read(int(path.name.removeprefix("feeder").split(".")[0]), path)
        return records

    def _failure(self, number: int) -> str:
        """The reason why a feeder failed; empty if only late or damaged fragments made its exit code 1.

        Their MEPs are incomplete, and the verdict judges them as such.
        """
        path = self._report(number)
        if not path.exists():
            return "no report"
        report = json.loads(path.read_text())
        wrong = {name: report[name] for name in ("error", "unacknowledged_meps") if report[name]}
        wrong |= {reason: count for reason, count in report["refused"].items() if reason not in PASSABLE}
        return str(wrong) if wrong else ""

    def _report(self, number: int) -> Path:
        return self._records[number].with_suffix(".json")

    def events_fed(self) -> int:
        """Number of events of all started runs."""
        return sum(self.fed.values()) * EVENTS_PER_MEP

    def _input(self, run: int) -> Path:
        return self._directory / f"run{run}.mep"

    def _prepare(self, run: int) -> None:
        """Start writing the input of a run, in parallel."""
        meps = self._meps[run] = next(self._lengths)
        command = [sys.executable, "-m", "tests.soak.content", str(self._input(run)), str(run), str(meps)]
        self._writing[run] = subprocess.Popen(command)

    def close(self) -> None:
        """End all running processes."""
        for process in (*self.feeders.values(), *self._writing.values()):
            if process.poll() is None:
                process.kill()
            process.wait()


def run_lengths(seed: int, mean: float) -> Iterator[int]:
    """Number of MEPs of each run, between half and one and a half of the mean."""
    rng = random.Random(f"{seed}/runs")
    while True:
        yield max(1, round(mean * rng.uniform(0.5, 1.5)))
