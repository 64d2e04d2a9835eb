"""Efficiencies of LHCb's lines on simulated signal decays, for `hltnode efficiency`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.lhcb.offline.tools.options import VeloBanksOption
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.offline.validation.selections.sample import efficiencies_of
from hltnode.processing.lhcb.offline.validation.selections.tables import efficiency_text
from hltnode.processing.offline.chain_tools import MeasuredEfficiencies, Results
from hltnode.processing.offline.truth_faults import TruthFaults
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.studies.decided_events import DecidingPass
from hltnode.processing.selection.studies.scans import Scan
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(frozen=True, slots=True, kw_only=True)
class EfficiencyOptions:
    """The options of `hltnode efficiency` that LHCb has of its own."""

    velo_banks: VeloBanksOption = "auto"


class LhcbEfficiency:
    """Of the decays whose products are all long-reconstructible in 2 < eta < 5, and of all events."""

    options = EfficiencyOptions

    def encoding(self, options: EfficiencyOptions) -> str:
        """The encoding of the VELO banks."""
        return options.velo_banks

    def retained(self, sequence: AlgorithmSequence) -> tuple[str, ...]:
        """The columns of tracks and vertices."""
        return retained(sequence)

    def measure(
        self,
        deciding: DecidingPass,
        events: Iterable[EventTable | Sequence[RawBank]],
        lines: Sequence[Line],
        scans: Sequence[Scan],
        progress: Callable[[int], None],
    ) -> MeasuredEfficiencies:
        """Efficiencies on all events whose truth can be used. Raises ValueError where there is none."""
        faults = TruthFaults()
        found = efficiencies_of(deciding, events, lines, scans, faults, progress)
        if not faults.events:
            return MeasuredEfficiencies(result=found.result())
        reasons = "; ".join(f"{fault} ({n})" for fault, n in faults.counts.items())
        return MeasuredEfficiencies(
            result=found.result() | {"truth": faults.result()},
            remark=f"{faults.events} events are left out, their truth cannot be used: {reasons}",
        )

    def text(self, results: Results) -> str:
        """The tables for the terminal."""
        return efficiency_text(results)

    def page(self, results: Results, text: str) -> str:
        """Numbers and plots as one HTML file."""
        # Only reports need matplotlib, an extra.
        from hltnode.processing.lhcb.offline.validation.reports.selection_report import efficiency_page

        return efficiency_page(results, text)
