"""Efficiencies of the lines of a configuration on a sample with truth: one pass."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.offline.validation.selections.signal import SignalDecays
from hltnode.processing.lhcb.offline.validation.selections.trigger_on_signal import SignalTracks, is_on_tracks
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.offline.checks.line_efficiencies import Efficiencies, SelectedSignal
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.studies.decided_events import DecidedEvents, DecidingPass
from hltnode.processing.selection.studies.sample_truth import SampleKinds
from hltnode.processing.selection.studies.scans import Scan
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.lhcb.truth_columns import decode_particle_columns
from hltnode.protocol.raw_data.raw_bank import RawBank


def efficiencies_of(
    deciding: DecidingPass,
    events: Iterable[EventTable | Sequence[RawBank]],
    lines: Sequence[Line],
    scans: Sequence[Scan],
    faults: TruthFaults,
    progress: Callable[[int], None],
) -> Efficiencies:
    """Run events with truth; events whose truth does not match are left out, counted in `faults`.

    lines: those of the configuration; the pass has been made for them and for those of the scans. progress: is called
    with the number of events of each batch.

    Raises ValueError where no event has truth, or none a signal decay.
    """
    parts = []
    kinds = SampleKinds()
    for decided in deciding.run(events):
        parts.append(_selected(decided, lines, scans, kinds, faults))
        progress(len(decided.events))
    found = SelectedSignal.joined(parts) if parts else None
    if found is None or len(found.pt) == 0:
        reasons = "; ".join(f"{fault} ({n})" for fault, n in faults.counts.items()) or "there are no events"
        raise ValueError(f"efficiencies need truth, and no event has one that can be used: {reasons}")
    return Efficiencies([line.name for line in lines], [is_on_tracks(line) for line in lines], scans, found, kinds)


def _selected(
    decided: DecidedEvents, lines: Sequence[Line], scans: Sequence[Scan], kinds: SampleKinds, faults: TruthFaults
) -> SelectedSignal:
    found = reconstructed_batch(decided.workspace)
    # Events that the global event cut removes have no hits to compare truth with.
    truth = [
        read_truth(banks, {} if cut else hits, faults)
        for banks, hits, cut in zip(decided.events, found.hits, found.is_cut, strict=True)
    ]
    nothing = decode_particle_columns([])
    particles = ParticleTable.of_events([nothing if it is None else it.particles for it in truth])
    tracks = SignalTracks(found, particles)
    decays = SignalDecays.of(particles)
    of_all = SelectedSignal(
        fired=decided.fired,
        on_signal=tracks.triggered(lines, decided),
        varied=tuple(decided.decisions(scan.lines) for scan in scans),
        varied_on_signal=tuple(tracks.triggered(scan.lines, decided) for scan in scans),
        is_cut=found.is_cut,
        products=decays.products,
        reconstructible=decays.reconstructible,
        pt=decays.pt,
        weights=kinds.add(decided.events, LHCB_READOUT),
    )
    return of_all.of(np.array([it is not None for it in truth], dtype=bool))
