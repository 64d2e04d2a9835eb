"""Simulated events with the banks of all detectors."""

from __future__ import annotations

from functools import cache

from hltnode.processing.lhcb.offline.simulation.banks.detector_encoding import BankVersions
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.protocol.raw_data.raw_bank import RawBank


@cache
def builtin_detector() -> Detector:
    """The built-in detector, which the simulation only reads: making it takes 0.25 s."""
    return Detector.builtin()


@cache
def full_events(
    n: int, seed: int, encoding: VeloEncoding = "retina", *, sample: str = "minbias", nu: float = 7.6
) -> tuple[list[RawBank], ...]:
    """`n` events of a sample in the built-in detector."""
    detector = builtin_detector()
    source = sample_source(sample, nu, detector.velo.beamline)
    return tuple(FullSimulation(detector, source, versions=BankVersions(velo=encoding)).events(n, seed))
