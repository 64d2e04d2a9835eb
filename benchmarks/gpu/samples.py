"""The computed events, and engines and batches for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lhcb import CHAIN, REAL_FILES, geometry_folder, real_file
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.engine import Engine, Workspace
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from tests.processing.lhcb.velo.dense_events import overlaid

SIMULATED = 8
LARGE = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """One MEP and its detector."""

    name: str
    mep: EncodedMep
    geometry: VeloGeometry


def simulated(n_events: int = SIMULATED, *, dense: bool = False) -> list[Sample]:
    """Minimum bias in both encodings.

    `dense` adds an event with the clusters of LARGE others, which uses the launches for large events.
    """
    geometry = VeloGeometry.builtin()
    samples = []
    for banks in ("retina", "superpixel"):
        events = list(simulate_events(n_events, 1, geometry=geometry, velo_banks=banks))
        if dense:
            events.append(overlaid(list(simulate_events(LARGE, 2, geometry=geometry, velo_banks=banks))))
        samples.append(Sample(f"simulated, {banks}", encode_mep(CHAIN, events, encoding=banks), geometry))
    return samples


def real(shared: Path, times: int = 1) -> list[Sample]:
    """The real events, `times` times in one MEP, in both encodings."""
    geometry = VeloGeometry.load(geometry_folder(shared))
    return [
        Sample(
            f"real, {encoding}",
            encode_mep(CHAIN, list(read_events(real_file(shared, encoding))) * times, encoding=encoding),
            geometry,
        )
        for encoding in REAL_FILES
    ]


def limits_of(mep: EncodedMep, meps: int) -> BatchLimits:
    """A batch of this number of MEPs."""
    nbytes = -(-mep.data.nbytes // 8) * 8
    return BatchLimits(events=meps * mep.n_events, meps=meps, input_bytes=meps * nbytes, rows=meps * len(mep.fragments))


def engine_of(backend: Backend, sample: Sample, meps: int, *, retain: Retain = ()) -> Engine:
    """HLT1 with the default trigger, for batches of `meps` MEPs of a sample. `retain` as for Engine."""
    return CHAIN.create_engine(
        backend,
        geometry_constants(sample.geometry),
        CHAIN.load_trigger(None, "velo"),
        limits_of(sample.mep, meps),
        retain=retain,
    )


def fill(workspace: Workspace, meps: Sequence[EncodedMep]) -> None:
    """Seal a batch."""
    placed, offset = [], 0
    for mep in meps:
        workspace.input_data[offset : offset + mep.data.nbytes] = mep.data
        fragments = [(source, offset + start, size) for source, start, size in mep.fragments]
        placed.append(MepInBatch(mep.n_events, fragments))
        offset += -(-mep.data.nbytes // 8) * 8
    workspace.seal(placed)
