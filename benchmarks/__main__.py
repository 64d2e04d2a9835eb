"""`python -m benchmarks [NAME ...] [--json FILE]`: run the benchmarks and print ratios against named baselines.

FILE gets the main figures of the benchmarks that have some, by the name of the benchmark or of the figure.

Four have their own reports. `python -m benchmarks profile` shows the time of each kernel, and with --timeline where
threads idle (timeline.py). `python -m benchmarks cpu` compares the CPU back end with another revision (cpu/). `python
-m benchmarks device_code` counts the cost of kernels on a GPU without using one (device_code/). `python -m benchmarks
gpu` measures on a GPU (gpu/).
"""

import importlib
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import timeline
from benchmarks.cpu import command as cpu
from benchmarks.device_code import block_sizes
from benchmarks.device_code import command as device_code
from benchmarks.device_code import streams as stream_device_code
from benchmarks.device_code import tpc as tpc_device_code
from benchmarks.gpu import command as gpu
from benchmarks.measure import Result
from hltnode.daemon.commands.result_files import ResultParser

FOLDERS = {
    "lhcb": (
        "sequences",
        "velo_partners",
        "velo_opening",
        "lines",
        "composites",
        "beyond",
        "occupancy",
        "simulation",
        "smoothing",
    ),
    "imaging": (
        "ccl",
        "gpu_labelling",
        "ccl_sizes",
        "sparse_ccl",
    ),
    "detectors": (
        "na62_rich",
        "alice_tpc",
        "km3net",
        "mu3e",
        "stream_nodes",
        "stream_growth",
    ),
    "readout": (
        "receive_and_build",
        "copy_threads",
        "replay",
        "gather",
        "real_readout",
        "shared_memory",
        "udp",
        "small_meps",
        "safe_delivery",
    ),
    "service": (
        "latency",
        "request",
        "scrape",
        "pages",
        "start",
    ),
}
"""The benchmarks of `python -m benchmarks` by the folder of their module."""
FOLDER_OF = {name: folder for folder, names in FOLDERS.items() for name in names}
OUTPUT = Path("build/benchmarks.json")
SHARED = Path(os.environ.get("HLTNODE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def main(names: list[str], summary: Path | None = None) -> None:
    """Run the benchmarks of the given names, all if none is given; `summary` gets their main figures."""
    results: dict[str, list[Result]] = {}
    figures: dict[str, object] = {}
    console = Console(width=120)
    for name in names or FOLDER_OF:
        table = Table("what", "value", "unit", "baseline", "ratio", "target", title=name)
        results[name] = []
        benchmark = importlib.import_module(f"benchmarks.{FOLDER_OF[name]}.{name}")
        for result in benchmark.run(SHARED):
            results[name].append(result)
            table.add_row(
                result.name,
                f"{result.value:,.1f}",
                result.unit,
                result.baseline,
                "" if result.ratio is None else f"{result.ratio:.2f}",
                "" if result.target is None else f"{result.target:.2f} {'✓' if result.reached else '✗'}",
            )
        console.print(table)
        if hasattr(benchmark, "summary"):
            figures[getattr(benchmark, "FIGURES", name)] = benchmark.summary(results[name])
    if summary is not None:
        summary.write_text(json.dumps(figures, indent=1) + "\n")
    OUTPUT.parent.mkdir(exist_ok=True)
    machine = {"machine": platform.processor() or platform.machine(), "cores": len(os.sched_getaffinity(0))}
    rows = {name: [asdict(result) for result in found] for name, found in results.items()}
    OUTPUT.write_text(json.dumps({**machine, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:4] == ["device_code", "--chain", "alice_tpc"]:
        tpc_device_code.main(sys.argv[4:])
    elif sys.argv[1:3] == ["device_code", "--chain"] and sys.argv[3:4] and sys.argv[3] in stream_device_code.STREAMS:
        stream_device_code.main(sys.argv[3], sys.argv[4:])
    elif sys.argv[1:3] == ["device_code", "--block-sizes"]:
        block_sizes.main(sys.argv[3:], SHARED)
    elif sys.argv[1:2] == ["device_code"]:
        device_code.main(sys.argv[2:], SHARED)
    elif sys.argv[1:2] == ["cpu"]:
        sys.exit(cpu.main(sys.argv[2:], SHARED))
    elif sys.argv[1:2] == ["profile"]:
        timeline.main(sys.argv[2:], SHARED)
    elif sys.argv[1:2] == ["gpu"]:
        sys.exit(gpu.main(sys.argv[2:], SHARED))
    else:
        parser = ResultParser(prog="python -m benchmarks")
        parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FOLDER_OF))
        parser.add_result_file("--json", help="the main figures, by benchmark")
        chosen = parser.parse_args()
        main(chosen.names, chosen.json)
