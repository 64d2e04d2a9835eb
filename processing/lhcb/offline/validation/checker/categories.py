"""The categories of particles in which efficiencies are given, stage by stage.

Definitions: docs/physics/validation.md. No electrons unless named, except in `fromSignal`, which has all particles, and
in `noVelo_UT`, which has only electrons; 2 < eta < 5 except in `velo`. `name` is the key in JSON, a stable contract;
`label` is the name that Allen's checker prints. A category without name is only printed, one without label is only in
JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from hltnode.processing.lhcb.offline.validation.checker.matching import SCIFI, UT, VELO
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.offline.arrays import Mask


class Stage(StrEnum):
    """Tracking stages; the value is the key in JSON."""

    VELO = "velo"
    UT = "velo_ut"
    LONG = "long"


DETECTOR_UNDER_TEST = {Stage.VELO: VELO, Stage.UT: UT, Stage.LONG: SCIFI}
"""The detector whose hits the hit efficiency of a stage counts."""

Belongs = Callable[[ParticleTable], Mask]


@dataclass(frozen=True, slots=True)
class Category:
    """A category: `belongs` returns for each particle whether it is a member."""

    name: str | None
    label: str | None
    belongs: Belongs


def _above(belongs: Belongs, p: float, pt: float = 0.0) -> Belongs:
    """Members with momentum and transverse momentum above p and pt (MeV)."""
    return lambda t: belongs(t) & (t.p > p) & (t.pt > pt)


def _velo(t: ParticleTable) -> Mask:
    return t.has_velo & ~t.is_electron & t.in_acceptance


def _velo_ut(t: ParticleTable) -> Mask:
    return _velo(t) & t.has_ut


def _velo_ut_not_long(t: ParticleTable) -> Mask:
    return _velo_ut(t) & ~t.is_long


def _long(t: ParticleTable) -> Mask:
    return t.is_long & ~t.is_electron & t.in_acceptance


def _strange(t: ParticleTable) -> Mask:
    return _long(t) & t.from_strange


def _beauty(t: ParticleTable) -> Mask:
    return _long(t) & t.from_beauty


def _electrons(t: ParticleTable) -> Mask:
    return t.is_long & t.is_electron & t.in_acceptance


def _beauty_electrons(t: ParticleTable) -> Mask:
    return _electrons(t) & t.from_beauty


def _no_velo_ut(t: ParticleTable) -> Mask:
    # Only electrons, in spite of the name: the reference has 6.1 per event; the truth of a real event has 6.6 electrons
    # and 11.3 other particles.
    return ~t.has_velo & t.has_ut & t.has_scifi & t.is_electron & t.in_acceptance


def _signal(t: ParticleTable) -> Mask:
    """Particles of any kind, electrons included."""
    return t.is_long & t.from_signal & t.in_acceptance


CATEGORIES: dict[Stage, tuple[Category, ...]] = {
    Stage.VELO: (
        Category("velo", None, lambda t: t.has_velo & ~t.is_electron),
        Category("velo_eta25", "01_velo", _velo),
        Category("long", "02_long", _long),
        Category("long_p5", "03_long_P>5GeV", _above(_long, 5000)),
        Category(None, "04_long_strange", _strange),
        Category(None, "05_long_strange_P>5GeV", _above(_strange, 5000)),
        Category("long_from_b", "06_long_fromB", _beauty),
        Category("long_from_b_p5", "07_long_fromB_P>5GeV", _above(_beauty, 5000)),
        Category("long_strange", None, _strange),
        Category("electrons_long", "08_long_electrons", _electrons),
        Category(None, "09_long_fromB_electrons", _beauty_electrons),
        Category(None, "10_long_fromB_electrons_P>5GeV", _above(_beauty_electrons, 5000)),
        Category(None, "11_long_fromSignal", _signal),
    ),
    Stage.UT: (
        Category("velo", "01_velo", _velo),
        Category("velo_ut", "02_velo+UT", _velo_ut),
        Category("velo_ut_p5", "03_velo+UT_P>5GeV", _above(_velo_ut, 5000)),
        Category("velo_not_long", "04_velo+notLong", lambda t: _velo(t) & ~t.is_long),
        Category("velo_ut_not_long", "05_velo+UT+notLong", _velo_ut_not_long),
        Category("velo_ut_not_long_p5", "06_velo+UT+notLong_P>5GeV", _above(_velo_ut_not_long, 5000)),
        Category("long", "07_long", _long),
        Category("long_p5", "08_long_P>5GeV", _above(_long, 5000)),
        Category("long_from_b", "09_long_fromB", _beauty),
        Category("long_from_b_p5", "10_long_fromB_P>5GeV", _above(_beauty, 5000)),
        Category("electrons_long", "11_long_electrons", _electrons),
        Category("electrons_long_from_b", "12_long_fromB_electrons", _beauty_electrons),
        Category("electrons_long_from_b_p5", "13_long_fromB_electrons_P>5GeV", _above(_beauty_electrons, 5000)),
    ),
    Stage.LONG: (
        Category("long", "01_long", _long),
        Category("long_p5", "02_long_P>5GeV", _above(_long, 5000)),
        Category("long_strange", "03_long_strange", _strange),
        Category("long_strange_p5", "04_long_strange_P>5GeV", _above(_strange, 5000)),
        Category("long_from_b", "05_long_fromB", _beauty),
        Category("long_from_b_p5", "06_long_fromB_P>5GeV", _above(_beauty, 5000)),
        Category("electrons_long", "07_long_electrons", _electrons),
        Category("electrons_long_p5", "08_long_electrons_P>5GeV", _above(_electrons, 5000)),
        Category("electrons_long_from_b", "09_long_fromB_electrons", _beauty_electrons),
        Category("electrons_long_from_b_p5", "10_long_fromB_electrons_P>5GeV", _above(_beauty_electrons, 5000)),
        Category("long_p5_pt1", "long_P>5GeV_AND_Pt>1GeV", _above(_long, 5000, 1000)),
        Category("long_from_b_p5_pt1", "long_fromB_P>5GeV_AND_Pt>1GeV", _above(_beauty, 5000, 1000)),
        Category("no_velo_ut", "11_noVelo_UT", _no_velo_ut),
        Category("no_velo_ut_p5", "12_noVelo_UT_P>5GeV", _above(_no_velo_ut, 5000)),
        Category("long_pt2", "13_long_PT>2GeV", _above(_long, 0, 2000)),
        Category("long_from_b_pt2", "14_long_from_B_PT>2GeV", _above(_beauty, 0, 2000)),
        Category(None, "15_long_strange_P>5GeV", _above(_strange, 5000)),
        Category("long_strange_p5_pt05", "16_long_strange_P>5GeV_PT>500MeV", _above(_strange, 5000, 500)),
        Category("long_from_signal", "17_long_fromSignal", _signal),
    ),
}
