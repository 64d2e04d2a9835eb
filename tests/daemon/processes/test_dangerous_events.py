"""An event that crashes or hangs the kernels ends the node twice and is then skipped.

The short form has the fake engine, the long one real kernels.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hltnode.daemon.common.vocabulary import EventStream
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import USER_TYPES
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mep import encode_mep
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.source_id import USER_SUBDETECTORS, source_id
from tests.conftest import TINY_CHAIN
from tests.daemon.fakes import RUN
from tests.daemon.fakes import SOURCES as FAKE_SOURCES
from tests.daemon.pages import metric
from tests.daemon.processes.test_processes import RATE, ROOT, Site
from tests.processing.framework.chain_builder import compiler, copy_package

pytestmark = [pytest.mark.process, pytest.mark.loopback]

SOURCES = (source_id(SubDetector.ODIN, 0), source_id(USER_SUBDETECTORS[0], 0), source_id(USER_SUBDETECTORS[1], 0))
"""A MEP begins with ODIN, which the chain does not read."""
MEPS, EVENTS = 40, 8
DANGEROUS_MEP, DANGEROUS_EVENT = 21, 5
MARK = b"\xde\xad\xbe\xef"
BANK = "            broken = broken || bank.type == hlt::broken_bank;\n"
DANGERS = {
    "crash": "__builtin_trap();",
    "hang": "for (volatile uint32_t turn = 0;; turn = turn + 1) {}",
}
BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from tiny.chain import TINY
from tests.processing.framework.chain_builder import build_chain
build_chain(TINY)
"""


@pytest.fixture(params=DANGERS)
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a tiny chain whose kernel crashes or hangs at a bank with the mark after its event number."""
    compiler()
    root = tmp_path / "chain"
    package = copy_package(TINY_CHAIN, root, "tiny")
    metadata = root / "tiny-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[hltnode.chains]\ntiny = tiny.chain:TINY\n")
    kernel = package / "count_hits.cuh"
    marked = f"bank.size >= 12 && hlt::load_u32(bank.data + 8) == {int.from_bytes(MARK, 'little'):#x}u"
    source = kernel.read_text()
    assert source.count(BANK) == 1
    kernel.write_text(source.replace(BANK, BANK + f"            if ({marked}) {DANGERS[request.param]}\n"))
    subprocess.run([sys.executable, "-c", BUILD, str(root)], cwd=ROOT, check=True)
    return root


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, 1)
    with site.config.open("a") as config:
        config.write('[trigger]\nchain = "tiny"\n[log]\nformat = "json"\n')
    site.input.write_bytes(b"".join(encode_mep(list(mfps.values())) for mfps in map(mfps_of, range(MEPS))))
    yield site
    for process in site.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def mfps_of(mep: int) -> dict[int, bytes]:
    """Banks with the number of the event, marked in one of them, and enough bytes for the line to accept the event."""
    numbers = np.arange(mep * EVENTS, (mep + 1) * EVENTS).tolist()
    marks = [MARK if number == DANGEROUS_MEP * EVENTS + DANGEROUS_EVENT else bytes(4) for number in numbers]
    banks = [number.to_bytes(8, "little") + mark + b"\xff" * 12 for number, mark in zip(numbers, marks, strict=True)]
    return {
        source: encode_mfp(
            source_id=source, event_id=mep * EVENTS, version=1, types=[USER_TYPES[0]] * EVENTS, fragments=banks
        )
        for source in SOURCES
    }


def kept(site: Site, stream: EventStream) -> list[int]:
    """Numbers of the events in the finished files of a stream."""
    return sorted(
        int.from_bytes(record.banks()[0].payload[:8], "little")
        for path in site.output.glob(f"*{stream}*.mdf")
        for record in iter_records(path.read_bytes())
    )


def test_a_mep_that_ends_the_fake_engine_twice_goes_to_the_error_stream_and_the_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, 1, meps=MEPS)
    # From the header of an MFP: the number of its first event, then its source.
    deadly = (DANGEROUS_MEP * EVENTS).to_bytes(8, "little") + FAKE_SOURCES[-1].to_bytes(2, "little")
    monkeypatch.setenv("TEST_DEADLY_BYTES", deadly.hex())
    try:
        node = site.start_node()
        feeder = site.start_feeder(1)
        assert site.wait(node) == -signal.SIGKILL, site.logs()
        assert site.wait(site.start("tests.daemon.node_process", str(site.config))) == -signal.SIGKILL, site.logs()
        node = site.start_node()
        assert site.wait(feeder) == 0, site.logs()
        assert metric(site.http, "hltnode_meps_not_processed_total") == 1
        node.terminate()
        assert site.wait(node) == 0, site.logs()
    finally:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    left_out = list(range(DANGEROUS_MEP * EVENTS, (DANGEROUS_MEP + 1) * EVENTS))
    assert kept(site, EventStream.ERROR) == left_out
    assert kept(site, EventStream.ACCEPTED) == [number for number in site.wanted if number not in left_out]
    assert '"mep_not_processed"' in site.logs()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_mep_that_ends_the_node_twice_goes_to_the_error_stream_and_the_others_do_not(site: Site, chain: Path) -> None:
    feeder = None
    for _ in range(2):
        node = site.start("tests.daemon.processes.node_of_chain", str(site.config), str(chain))
        feeder = feeder or site.start(
            *("tests.daemon.processes.command_of_chain", str(chain), "replay", str(site.input), "--chain", "tiny"),
            *("--to", site.data, "--control", site.control, "--run", str(RUN), "--rate", str(RATE), "--wait"),
        )
        assert site.wait(node, 150.0) != 0, site.logs()
    node = site.start("tests.daemon.processes.node_of_chain", str(site.config), str(chain))
    assert feeder is not None
    assert site.wait(feeder, 150.0) == 0, site.logs()
    assert metric(site.http, "hltnode_meps_not_processed_total") == 1
    assert metric(site.http, 'hltnode_events_flagged_total{flag="not_processed"}') == EVENTS
    node.terminate()
    assert site.wait(node) == 0, site.logs()
    everything = range(MEPS * EVENTS)
    left_out = list(everything[DANGEROUS_MEP * EVENTS : (DANGEROUS_MEP + 1) * EVENTS])
    assert kept(site, EventStream.ERROR) == left_out
    assert kept(site, EventStream.ACCEPTED) == [number for number in everything if number not in left_out]
    assert '"mep_not_processed"' in site.logs()
