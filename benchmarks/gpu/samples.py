"""The computed events, and engines and batches for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lhcb.real_events import CHAIN, REAL_FILES, geometry_folder, real_events, real_file
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.selection.trigger_chain import Constants
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.velo.dense_events import overlaid

SIMULATED = 8
LARGE = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """One MEP, its detector and the sequence that computes it.

    geometry: the VELO alone for the sequence `velo`; for the others a folder, or None for the built-in detector.
    """

    name: str
    mep: EncodedMep
    geometry: VeloGeometry | Path | None
    sequence: str = "velo"

    @property
    def constants(self) -> Constants:
        """What the sequence knows of the detector."""
        if isinstance(self.geometry, VeloGeometry):
            return geometry_constants(self.geometry)
        return CHAIN.with_sequence(self.sequence).load_geometry(self.geometry)


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


def whole_hlt1(sequence: str, n_events: int) -> Sample:
    """Simulated events of all detectors."""
    events = list(full_events(n_events, 3))
    mep = encode_mep(CHAIN.with_sequence(sequence), events, encoding="retina")
    return Sample(f"{sequence}, simulated", mep, None, sequence)


def real_whole_hlt1(sequence: str, shared: Path, times: int = 1) -> Sample:
    """The real events of all detectors, `times` times in one MEP."""
    mep = encode_mep(CHAIN.with_sequence(sequence), real_events(shared) * times, encoding="retina")
    return Sample(f"{sequence}, real", mep, geometry_folder(shared), sequence)


def limits_of(mep: EncodedMep, meps: int) -> BatchLimits:
    """A batch of this number of MEPs."""
    nbytes = -(-mep.data.nbytes // 8) * 8
    return BatchLimits(events=meps * mep.n_events, meps=meps, input_bytes=meps * nbytes, rows=meps * len(mep.fragments))


def engine_of(backend: Backend, sample: Sample, meps: int, *, retain: Retain = ()) -> Engine:
    """The sequence of a sample with the default trigger, for batches of `meps` MEPs. `retain` as for Engine."""
    return CHAIN.create_engine(
        backend,
        sample.constants,
        CHAIN.load_trigger(None, sample.sequence),
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
