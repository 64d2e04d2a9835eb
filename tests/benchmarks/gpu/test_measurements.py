"""All computations of `make gpu` on a simulated GPU: the steps are real, the times are meaningless."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import command, samples, throughput
from benchmarks.gpu.command import Workload, attempt, machine, measure_all
from benchmarks.gpu.correctness import correctness
from benchmarks.gpu.report import Report, Section
from benchmarks.gpu.throughput import node_config, node_rate, node_throughput
from hltnode.daemon.cli import app
from hltnode.daemon.configuration.loading import load_config
from hltnode.processing.algorithms.deliver_lists import DELIVERING
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE
from hltnode.processing.selection.select_lines import NAME as SELECT_LINES_KERNEL
from tests.processing.framework.cupy_stand_in import CupyStandIn, install
from tests.processing.framework.simulated_gpu import ILLEGAL_ADDRESS, Order, SimulatedGpu

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CupyStandIn:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return install(monkeypatch, SimulatedGpu(CHAIN.kernels, order=Order.RANDOM))


def counted() -> dict[str, Any]:
    """Counts in the format of device_code.py."""
    kernel = {
        "warp_instructions": 1000.0,
        "machine_per_ptx": 1.3,
        "global_instructions": 10.0,
        "barriers": 2.0,
        "sectors": 100.0,
        "used_bytes": 1000.0,
        "grid": "EVENTS",
        "block_size": 64,
        "targets": {"sm_90": {"occupancy": 0.5}},
    }
    kernels = {algorithm.name: kernel for algorithm in HLT1_SEQUENCE}
    return {"retina": {"kernels": kernels, "total": {"events": 7, "input_bytes": 9000.0}}}


def a_workload() -> Workload:
    [retina, _] = samples.simulated(2)
    return Workload(
        compared=[retina],
        measured=[retina],
        count=counted,
        node=None,
        block_sizes=[64],
        meps=1,
        profiled=1,
        timed=4,
        engine_meps=2,
    )


def test_everything_is_measured_and_reported(cupy: CupyStandIn, tmp_path: Path) -> None:
    report = Report(tmp_path / "gpu", "hltnode on a GPU")
    make_backend = partial(CudaBackend, CHAIN.kernels)
    report.add(machine(make_backend()))
    measure_all(report, make_backend, a_workload())
    assert report.good, (tmp_path / "gpu" / "report.md").read_text()
    found = json.loads((tmp_path / "gpu" / "report.json").read_text())
    of_sample = ("Kernel times", "Overlap of slots", "Memory", "Throughput of the engine", "Against the estimate")
    assert list(found) == [
        "Machine",
        "All kernels at all block sizes against the CPU",
        *(f"{title}: simulated, retina" for title in of_sample),
    ]
    assert found["Machine"]["data"]["GPU"] == "GPU 0, Simulated GPU"
    kernels = [algorithm.name for algorithm in HLT1_SEQUENCE]
    times = found["Kernel times: simulated, retina"]["data"]["seconds_per_event"]
    after = (SELECT_LINES_KERNEL, *(algorithm.name for algorithm in DELIVERING))
    assert list(times) == [*kernels, *after]
    # Each launch and the event that follows it take one millisecond, for two events.
    expected = {algorithm.name: 0.001 * len(algorithm.launches) for algorithm in HLT1_SEQUENCE}
    assert times == expected | dict.fromkeys(after, 0.001)
    spans = found["Overlap of slots: simulated, retina"]["data"]["spans"]
    assert [span["slot"] for span in spans] == [0, 1, 2, 0]
    assert all(span["begin"] < span["on_device"] < span["computed"] < span["back"] for span in spans)
    memory = found["Memory: simulated, retina"]["data"]
    assert memory["device, all slots, as taken"] == memory["device, all slots, as planned"] > 0
    assert list(found["Against the estimate: simulated, retina"]["data"]) == [
        *kernels,
        "all kernels",
        "slots that overlap",
    ]


def test_columns_that_differ_from_those_of_the_cpu_are_named(
    cupy: CupyStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    [sample, _] = samples.simulated(1)

    class Wrong(CudaBackend):
        def read(self, memory: Any, nbytes: int) -> Any:
            content = super().read(memory, nbytes)
            if nbytes == 4 * len(sample.mep.events):
                content[0] ^= 1
            return content

    section = correctness("VELO", lambda size: Wrong(CHAIN.kernels, block_size=size), [sample], [32])
    assert section.good is False
    assert "events.flags" in section.data["simulated, retina"]["32"]
    assert "velo_hits.x" not in section.data["simulated, retina"]["32"]


def test_a_device_that_is_lost_ends_the_measurements(cupy: CupyStandIn, tmp_path: Path) -> None:
    cupy.gpu.fault("velo_sort_by_phi", ILLEGAL_ADDRESS)
    report = Report(tmp_path, "hltnode on a GPU")
    measure_all(report, partial(CudaBackend, CHAIN.kernels), a_workload())
    assert not report.good
    assert [section.title for section in report.sections] == ["All kernels at all block sizes against the CPU"]
    assert "cudaErrorIllegalAddress" in report.sections[0].text


def test_the_command_reports_what_each_tool_found(
    cupy: CupyStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "measure_all", lambda *_: None)
    for tool in ("gpu_tests", "sanitizer", "beside_cupy"):
        monkeypatch.setattr(command, tool, lambda *_: Section(title="Tool", good=True))
    assert command.main([], tmp_path / "nowhere") == 1
    text = (tmp_path / "build" / "gpu" / "report.md").read_text()
    assert "nowhere is missing: set HLTNODE_SHARED" in text
    assert "Tool: passed" in text


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.loopback
def test_a_node_is_measured_while_feeders_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "MEASURED_SECONDS", 3.0)
    monkeypatch.setattr(throughput, "SAMPLE_SECONDS", 0.2)
    events = tmp_path / "events.mdf"
    app(["simulate", "-n", "64", "--seed", "3", "--run", "77", "-o", str(events)], standalone_mode=False)
    assert node_rate(events, backend="cpu", device=0, repeats=200) > 0


def test_the_configuration_of_the_node_that_is_measured_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(node_config(tmp_path, range(5001, 5005), "cuda", 0))
    assert load_config(path).builder.min_feeders == throughput.FEEDERS


@pytest.mark.process
def test_a_node_that_does_not_start_is_reported_with_its_log(tmp_path: Path) -> None:
    report = Report(tmp_path, "hltnode on a GPU")
    attempt(
        report,
        "Node",
        lambda: [node_throughput(node_rate(tmp_path / "no.mdf", backend="fpga", device=0, repeats=1))],
    )
    assert not report.good
    assert "the node did not start" in report.sections[0].text
    assert "pipeline.backend" in report.sections[0].text
