"""Lines on decays of a D0 with K0S that decay behind the VELO (docs/physics/composites.md).

A vertex of two downstream tracks has no errors, and its line of flight misses the decay by about a millimetre. So the
distances of these parts are cut at millimetres, and a vertex of long tracks stays where it is.
"""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Distance, Momentum, Positive
from hltnode.processing.lhcb.lines.inputs.composite_inputs import composite
from hltnode.processing.lhcb.lines.inputs.downstream_fields import downstream_v0s
from hltnode.processing.lhcb.lines.inputs.vertex_fields import displaced_vertices, v0s
from hltnode.processing.lhcb.lines.line_types.composite_lines import KS_MASS
from hltnode.processing.lhcb.lines.line_types.two_tracks import D0_MASS
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType

LARGEST_MASS = 2200 * MeV
"""Of candidates of the composites: enough for both sides of the mass of the D0."""

downstream_kaons = downstream_v0s.those(
    "downstream K0S",
    "downstream V0s with the mass of a K0S",
    lambda v: v.is_ks & (abs(v.m_pipi - KS_MASS) < 50 * MeV),
)
pairs_and_downstream_kaons = composite(
    "d2kshh_dd",
    displaced_vertices.those(
        "pairs", "displaced vertices of opposite charges", lambda v: ~v.same_sign & (v.min_pt > 250 * MeV)
    ),
    downstream_kaons,
    masses=(lambda v: v.m_pipi, KS_MASS),
    decays_at_first=True,
    where=lambda _v, _s, both: (both.doca < 5 * mm) & (both.mass < LARGEST_MASS),
    description="downstream K0S and two tracks from one vertex",
)
kaons_and_downstream_kaons = composite(
    "d2ksks_ld",
    v0s.those("K0S", "candidates of K0S", lambda v: v.is_ks),
    downstream_kaons,
    masses=(KS_MASS, KS_MASS),
    where=lambda _v, _s, both: (both.doca < 5 * mm) & (both.mass < LARGEST_MASS),
    description="K0S in the VELO and downstream K0S",
)
downstream_kaon_pairs = composite(
    "d2ksks_dd",
    downstream_kaons,
    downstream_kaons,
    masses=(KS_MASS, KS_MASS),
    where=lambda _v, _s, both: (both.doca < 5 * mm) & (both.mass < LARGEST_MASS),
    description="two downstream K0S",
)
COMPOSITES = (pairs_and_downstream_kaons, kaons_and_downstream_kaons, downstream_kaon_pairs)


@dataclass(frozen=True, config=VALIDATED)
class _OfDownstreamKaons(LineType):
    """A D0 with downstream K0S: its mass, and the K0S."""

    histograms = (
        Histogram("mass", lambda c: c.mass, 50, (D0_MASS - 100) * MeV, (D0_MASS + 100) * MeV, description="of the D0"),
    )

    min_pt: Momentum = 2000.0
    max_doca: Distance = 3.0
    mass_window: Momentum = 60.0
    ks_window: Momentum = 25.0
    min_ks_pt: Momentum = 500.0

    def of_first(self, first: Any) -> Any:
        """Whether the first part is that of the line."""
        return self.is_ks(first)

    def is_ks(self, v: Any) -> Any:
        """Whether a part is a K0S of the line."""
        return (abs(v.m_pipi - KS_MASS) < self.ks_window * MeV) & (v.pt > self.min_ks_pt * MeV)

    def selects(self, candidate: Any) -> Any:
        c = candidate
        return (
            (abs(c.mass - D0_MASS * MeV) < self.mass_window * MeV)
            & (c.pt > self.min_pt * MeV)
            & (c.doca < self.max_doca * mm)
            & self.of_first(c.first)
            & self.is_ks(c.second)
        )


@dataclass(frozen=True, config=VALIDATED)
class D2KshhDD(_OfDownstreamKaons):
    """D0 to a downstream K0S and two pions."""

    input = pairs_and_downstream_kaons

    mass_window: Momentum = 80.0
    min_pair_fd_chi2: Positive = 25.0

    def of_first(self, first: Any) -> Any:
        return first.fd_chi2 > self.min_pair_fd_chi2


@dataclass(frozen=True, config=VALIDATED)
class D02KsKsLD(_OfDownstreamKaons):
    """D0 to a K0S in the VELO and a downstream one."""

    input = kaons_and_downstream_kaons


@dataclass(frozen=True, config=VALIDATED)
class D02KsKsDD(_OfDownstreamKaons):
    """D0 to two downstream K0S."""

    input = downstream_kaon_pairs


TYPES = (D2KshhDD, D02KsKsLD, D02KsKsDD)
LINES = (D2KshhDD("Hlt1D2KshhDD"), D02KsKsLD("Hlt1D02KsKsLD"), D02KsKsDD("Hlt1D02KsKsDD"))
"""Those of the sequence with downstream tracks."""
