"""Efficiencies of lines on a sample of signal decays (docs/physics/selection.md).

Three denominators: events whose decay can be reconstructed, that is all its products are reconstructible; those of them
that the event cut keeps; and all events. Errors are Wilson score intervals of 68.3 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.statistics import wilson_interval
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.selection.studies.scans import Scan

PT = Binning("$p_T$ of the decay", "GeV", np.concatenate([np.arange(0, 8, 1), np.arange(8, 20.1, 2)]), scale=1e-3)


@dataclass(frozen=True, slots=True, eq=False)
class SelectedSignal:
    """Events with a signal decay and the decisions of lines on them, one row each.

    fired, on_signal: bool[events, lines]. varied, varied_on_signal: bool[events, values] of each scan. is_cut: the
    event cut removed the event. products, reconstructible: numbers of products of the decay. pt: of the decay, MeV.
    """

    fired: Mask
    on_signal: Mask
    varied: tuple[Mask, ...]
    varied_on_signal: tuple[Mask, ...]
    is_cut: Mask
    products: Int64Array
    reconstructible: Int64Array
    pt: Float64Array

    def of(self, kept: Mask) -> "SelectedSignal":
        """Some of the events, bool[events]."""
        return SelectedSignal(
            self.fired[kept],
            self.on_signal[kept],
            tuple(found[kept] for found in self.varied),
            tuple(found[kept] for found in self.varied_on_signal),
            self.is_cut[kept],
            self.products[kept],
            self.reconstructible[kept],
            self.pt[kept],
        )

    @classmethod
    def joined(cls, parts: Sequence["SelectedSignal"]) -> "SelectedSignal":
        """The events of at least one part."""
        scans = range(len(parts[0].varied))
        return cls(
            fired=np.concatenate([part.fired for part in parts]),
            on_signal=np.concatenate([part.on_signal for part in parts]),
            varied=tuple(np.concatenate([part.varied[i] for part in parts]) for i in scans),
            varied_on_signal=tuple(np.concatenate([part.varied_on_signal[i] for part in parts]) for i in scans),
            is_cut=np.concatenate([part.is_cut for part in parts]),
            products=np.concatenate([part.products for part in parts]),
            reconstructible=np.concatenate([part.reconstructible for part in parts]),
            pt=np.concatenate([part.pt for part in parts]),
        )


MAX_OTHER_DECAYS = 0.01
"""This fraction of the decays may have more products than most have."""


class Efficiencies:
    """Efficiencies of lines, by name, and of all together.

    has_tracks: for each line, whether signal can have made its candidates.
    """

    def __init__(
        self, names: Sequence[str], has_tracks: Sequence[bool], scans: Sequence[Scan], found: SelectedSignal
    ) -> None:
        """Raises ValueError if no event has a signal decay, or if the events have different decays."""
        if not found.products.any():
            raise ValueError("no event has a signal decay: efficiencies need a sample of them, not minimum bias")
        self.names = tuple(names)
        self.has_tracks = tuple(has_tracks)
        self.scans = tuple(scans)
        self.found = found
        numbers, counts = np.unique(found.products[found.products > 0], return_counts=True)
        self.products = int(numbers[np.argmax(counts)])
        """Products of a decay: the number that most decays have. Truth lacks products without any hit."""
        more = int(counts[numbers > self.products].sum())
        if more > MAX_OTHER_DECAYS * counts.sum():
            raise ValueError(
                f"{more} of {counts.sum()} decays have more products than the {self.products} of most: "
                "efficiencies need a sample of one decay"
            )
        self.complete: Mask = found.reconstructible >= self.products
        """Events whose decay can be reconstructed."""

    def result(self) -> dict[str, Any]:
        """The JSON object of `hltnode efficiency`; fractions 0..1, None for an empty denominator."""
        found = self.found
        lines = {
            name: self._line(found.fired[:, i], found.on_signal[:, i] if self.has_tracks[i] else None)
            for i, name in enumerate(self.names)
        }
        return {
            "events": len(found.pt),
            "products": self.products,
            "reconstructible": int(self.complete.sum()),
            "kept_by_event_cut": {
                "reconstructible": _fraction(~found.is_cut[self.complete]),
                "all": _fraction(~found.is_cut),
            },
            "lines": lines,
            "any": self._line(_any(found.fired), _any(found.on_signal)),
            "against_pt": self._against_pt(),
            "scans": [self._scan(i, scan) for i, scan in enumerate(self.scans)],
        }

    def _line(self, fired: Mask, on_signal: Mask | None) -> dict[str, Any]:
        """Efficiencies of reconstructible decays, of those that the event cut keeps, and of all events."""
        return {
            **_efficiencies(fired, on_signal, self.complete),
            "of_kept": _efficiencies(fired, on_signal, self.complete & ~self.found.is_cut),
            "of_all": _efficiencies(fired, on_signal, np.ones(len(fired), bool)),
        }

    def _against_pt(self) -> dict[str, Any]:
        """Reconstructible decays in bins of their pt: all, selected by any line, and selected on signal."""
        found = self.found.of(self.complete)
        bins = PT.bins_of(found.pt)
        parts = {
            "reconstructible": np.ones(len(bins), dtype=bool),
            "selected": _any(found.fired),
            "trigger_on_signal": _any(found.on_signal),
        }
        return {
            "title": PT.title,
            "unit": PT.unit,
            "edges": PT.edges.tolist(),
            **{name: PT.count(bins[part]).astype(int).tolist() for name, part in parts.items()},
        }

    def _scan(self, number: int, scan: Scan) -> dict[str, Any]:
        found = self.found
        fired = scan.replaced(found.fired, found.varied[number])
        on_signal = scan.replaced(found.on_signal, found.varied_on_signal[number])
        points = [
            {
                "value": value,
                "line": self._line(fired.line[:, i], on_signal.line[:, i] if self.has_tracks[scan.place] else None),
                "any": self._line(fired.total[:, i], on_signal.total[:, i]),
            }
            for i, value in enumerate(scan.values)
        ]
        return {"line": scan.line, "cut": scan.cut, "unit": scan.unit, "points": points}


def _any(of_lines: Mask) -> Mask:
    """bool[events] of bool[events, lines]."""
    return cast(Mask, of_lines.any(axis=1))


def _efficiencies(fired: Mask, on_signal: Mask | None, among: Mask) -> dict[str, Any]:
    names = ("trigger_on_signal", "trigger_on_signal_low", "trigger_on_signal_high")
    tos = dict.fromkeys(names) if on_signal is None else _interval("trigger_on_signal", on_signal[among])
    return {**_interval("efficiency", fired[among]), **tos}


def _interval(name: str, passed: NDArray[np.bool_]) -> dict[str, float | None]:
    if len(passed) == 0:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    low, high = wilson_interval(int(passed.sum()), len(passed))
    return {name: float(passed.mean()), f"{name}_low": float(low), f"{name}_high": float(high)}


def _fraction(passed: NDArray[np.bool_]) -> float | None:
    return float(passed.mean()) if len(passed) else None
