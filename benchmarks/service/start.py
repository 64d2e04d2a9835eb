"""Cost of starting a command, and a node until it is ready: separate processes, medians.

The baseline is a Python process that does nothing. Bytecode is compiled in advance, as after an installation. Wall
times depend on other work of the machine, processor times hardly.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Result

RUNS = 7
BASELINE = "python -c pass"
LIBRARIES = "python -c 'import numpy, zmq'"
INSPECTED_BYTES = 14_000_000
REAL_EVENTS = "data/lhcb-minbias-mdf/minbias_80a10f3e_noretina_ev6001_6007.mdf"
TICKS = os.sysconf("SC_CLK_TCK")
NODE = """
[network]
data = "tcp://127.0.0.1:*"
control = "tcp://127.0.0.1:*"
decisions = "tcp://127.0.0.1:*"
[pipeline]
backend = "cpu"
[output]
directory = "{directory}/output"
[http]
port = 0
"""


def run(shared: Path) -> Iterator[Result]:
    """Wall-clock time and processor time of each start against the baseline, in turn.

    `inspect` reads the seven real events of `shared`, repeated; without them it is left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "node.toml"
        config.write_text(NODE.format(directory=folder))
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",
        }
        hltnode = [sys.executable, "-m", "hltnode.daemon"]
        starts: dict[str, Callable[[], tuple[float, float]]] = {
            BASELINE: lambda: _until_its_end([sys.executable, "-c", "pass"], environment),
            LIBRARIES: lambda: _until_its_end([sys.executable, "-c", "import numpy, zmq"], environment),
            "hltnode --version": lambda: _until_its_end([*hltnode, "--version"], environment),
            "hltnode --help": lambda: _until_its_end([*hltnode, "--help"], environment),
            "hltnode serve --help": lambda: _until_its_end([*hltnode, "serve", "--help"], environment),
            "hltnode process --help": lambda: _until_its_end([*hltnode, "process", "--help"], environment),
            "hltnode serve until it is ready": lambda: _until_it_is_ready(
                [*hltnode, "serve", "--config", str(config)], environment
            ),
        }
        if (events := shared / REAL_EVENTS).exists():
            file = Path(folder) / "events.mdf"
            content = events.read_bytes()
            file.write_bytes(content * (INSPECTED_BYTES // len(content)))
            starts[f"hltnode inspect, {INSPECTED_BYTES / 1e6:.0f} MB"] = lambda: _until_its_end(
                [*hltnode, "inspect", str(file)], environment
            )
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in starts}
        for turn in range(RUNS + 1):
            for name, start in starts.items():
                measured = start()
                if turn:
                    seconds[name].append(measured)
    wall, cpu = ({name: statistics.median(run[i] for run in runs) for name, runs in seconds.items()} for i in (0, 1))
    for name in starts:
        if name == BASELINE:
            continue
        yield Result(f"{name}, wall clock", wall[name] * 1e3, "ms", BASELINE, wall[name] / wall[BASELINE])
        yield Result(f"{name}, processor", cpu[name] * 1e3, "ms", BASELINE, cpu[name] / cpu[BASELINE])


def summary(results: list[Result]) -> dict[str, object]:
    """Milliseconds of each start, and their ratio to the baseline, for both clocks."""
    return {result.name: {"ms": result.value, "ratio": result.ratio} for result in results}


def _until_its_end(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall-clock and processor time in s of a process, from its start to its end."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def _until_it_is_ready(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """The same for a node, from its start to its log line `ready`."""
    begin = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if b'"event": "ready"' in line or b'"event":"ready"' in line:
                    seconds = time.perf_counter() - begin
                    user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                    return seconds, (int(user) + int(system)) / TICKS
            raise RuntimeError("the node ended before it was ready")
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
