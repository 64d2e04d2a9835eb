"""Simulation of minimum-bias events on one core, and the checker of their reconstruction."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lhcb.real_events import CHAIN
from benchmarks.measure import Result, median
from hltnode.daemon.commands.physics.validate import EVENTS_PER_MEP, LIMITS
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.event_files import read_event_tables
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.blocks import (
    EVENTS_PER_BLOCK,
    Detectors,
    SimulationRequest,
    encode_block,
)
from hltnode.processing.lhcb.offline.simulation.generation.samples import Sample
from hltnode.processing.lhcb.offline.simulation.velo_generator import DEFAULT_NU
from hltnode.processing.lhcb.offline.validation.checker.batch_check import check_batch
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained

BLOCKS = 4
RUNS = 7


def request(detectors: Detectors) -> SimulationRequest:
    """Minimum bias with the default options of `hltnode simulate`."""
    return SimulationRequest(
        sample=Sample.MINBIAS,
        nu=DEFAULT_NU,
        seed=1,
        run=1,
        detectors=detectors,
        versions=BankVersions(),
        file_format="mdf",
    )


def encode_events(detectors: Detectors) -> bytes:
    """Blocks of MDF records, like those of the command."""
    return b"".join(
        encode_block(request(detectors), EVENTS_PER_BLOCK * block, EVENTS_PER_BLOCK) for block in range(BLOCKS)
    )


def simulated_per_second(detectors: Detectors) -> float:
    """Events per second of processor time of this process, which is that of one core."""
    begin = time.process_time()
    encode_events(detectors)
    return BLOCKS * EVENTS_PER_BLOCK / (time.process_time() - begin)


def checked_per_second(path: Path) -> float:
    """Rate of reading, reconstruction on two threads and comparison with the truth, in events per second."""
    begin = time.perf_counter()
    engine = CHAIN.create_engine(
        CpuBackend(CHAIN.kernels, threads=2),
        geometry_constants(VeloGeometry.builtin()),
        CHAIN.load_trigger(None, "velo"),
        LIMITS,
        retain=retained(HLT1_SEQUENCE),
    )
    checker = Checker()
    for batch in OfflineRunner(engine).run(encode_meps(CHAIN, read_event_tables(path), EVENTS_PER_MEP, "auto")):
        check_batch(checker, batch)
    engine.close()
    checker.result()
    return checker.events / (time.perf_counter() - begin)


def run(_shared: Path) -> Iterator[Result]:
    """Measure."""
    full = median(lambda: simulated_per_second("full"), RUNS)
    yield Result("minimum bias, all detectors", full, "events/s of a core", "", None)
    velo = median(lambda: simulated_per_second("velo"), RUNS)
    yield Result("minimum bias, VELO alone", velo, "events/s of a core", "all detectors, same run", velo / full)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "minbias.mdf"
        path.write_bytes(encode_events("full"))
        checked = median(lambda: checked_per_second(path), RUNS)
    yield Result("checker, 2 threads", checked, "events/s", "simulation of a core, same run", checked / full)
