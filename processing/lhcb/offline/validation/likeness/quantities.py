"""All quantities of the likeness report, by detector."""

from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS as SCIFI_LAYERS
from hltnode.processing.lhcb.geometry.ideal_scifi import N_MAT_INDICES
from hltnode.processing.lhcb.geometry.ideal_ut import N_SECTORS
from hltnode.processing.lhcb.geometry.ideal_velo import SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.muon import N_LAYOUTS
from hltnode.processing.lhcb.offline.validation.likeness.muon_fields import MUON_RANGES
from hltnode.processing.lhcb.offline.validation.likeness.tracking import BEND_RANGES, HEIGHT_RANGES, MOMENTUM_RANGES
from hltnode.processing.offline.likeness.distribution import Quantity, Statistic
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.muon import MAX_TIME
from hltnode.protocol.lhcb.banks.velo import N_SENSORS

BANKS = {
    LhcbBankType.VP_RETINA_CLUSTER: ("VELO", "retina", "retina cluster", 2000),
    LhcbBankType.VP: ("VELO", "superpixel", "super-pixel", 2000),
    LhcbBankType.UT: ("UT", "ut", "UT", 1000),
    LhcbBankType.FT_CLUSTER: ("SciFi", "scifi", "SciFi", 1000),
    LhcbBankType.MUON: ("muon", "muon", "muon", 2000),
}
"""Bank types: detector, short name, title, largest payload with a bin of its own (bytes)."""


def _counted(
    name: str, detector: str, title: str, per: str, largest: int, width: int = 1, *, falls: bool = False
) -> Quantity:
    """Whole numbers from 0 to `largest`, `width` of them in each bin."""
    bins = largest // width + 1
    return Quantity(
        name=name, detector=detector, title=title, per=per, low=-0.5, high=bins * width - 0.5, bins=bins, falls=falls
    )  # fmt: skip


def _place(
    name: str, detector: str, title: str, n: int, together: int = 1, place_names: tuple[str, ...] = ()
) -> Quantity:
    """Places 0 to n - 1 of hits, `together` of them in a bin of the plot."""
    return Quantity(
        name=name, detector=detector, title=title, per="hit", low=-0.5, high=n - 0.5, bins=n, statistic=None,
        occupancy=True, drawn_together=together, place_names=place_names,
    )  # fmt: skip


def _measured(
    name: str,
    detector: str,
    title: str,
    per: str,
    low: float,
    high: float,
    unit: str = "",
    *,
    statistic: Statistic | None = None,
    falls: bool = False,
) -> Quantity:
    return Quantity(
        name=name, detector=detector, title=title, per=per, low=low, high=high, bins=1000, unit=unit,
        statistic=statistic, falls=falls,
    )  # fmt: skip


def _mean_of_falling(name: str, detector: str, title: str, per: str, low: float, high: float, unit: str) -> Quantity:
    return _measured(name, detector, title, per, low, high, unit, statistic=Statistic.MEAN, falls=True)


def _of_banks() -> list[Quantity]:
    found = []
    for detector, name, title, largest in BANKS.values():
        found += [
            Quantity(
                name=f"{name}_bank_size", detector=detector, title=f"{title} payload", per="bank", unit="bytes",
                low=-0.5, high=largest + 0.5, bins=largest + 1, falls=True,
            ),
            Quantity(
                name=f"{name}_bytes_per_event", detector=detector, title=f"{title} payload", per="event", unit="bytes",
                low=-0.5, high=79_999.5, bins=8000,
            ),
            _counted(f"{name}_banks_per_event", detector, f"{title} banks", "event", 300),
        ]  # fmt: skip
    return found


_SCIFI_LAYER_NAMES = tuple(f"T{station}{layer}" for station in (1, 2, 3) for layer in ("X1", "U", "V", "X2"))
_MUON_REGION_NAMES = tuple(f"M{station}R{region}" for station in (2, 3, 4, 5) for region in (1, 2, 3, 4))

_ALL = [
    *_of_banks(),
    _counted("velo_clusters_per_event", "VELO", "VELO clusters", "event", 12_000, width=4),
    _counted("velo_clusters_per_sensor", "VELO", "VELO clusters", "sensor", 400, falls=True),
    _counted("velo_superpixels_per_event", "VELO", "VELO super-pixels", "event", 16_000, width=4),
    _counted("velo_cluster_size", "VELO", "pixels of VELO clusters", "cluster", 100, falls=True),
    _place("velo_sensor", "VELO", "VELO sensor", N_SENSORS, SENSORS_PER_MODULE),
    _measured("velo_cluster_radius", "VELO", "distance of VELO clusters from the beam", "cluster", 0, 60, "mm"),
    _counted("ut_hits_per_event", "UT", "UT hits", "event", 6000, width=4),
    _counted("ut_hits_per_board", "UT", "UT hits", "bank", 300, falls=True),
    _counted("ut_cluster_size", "UT", "strips of UT clusters", "cluster", 40, falls=True),
    _place("ut_layer", "UT", "UT layer", 4, place_names=("UTaX", "UTaU", "UTbV", "UTbX")),
    _place("ut_sector", "UT", "UT sector", N_SECTORS, 8),
    _measured("ut_hit_x", "UT", "|x| of UT hits", "hit", 0, 850, "mm"),
    _counted("scifi_hits_per_event", "SciFi", "SciFi hits", "event", 20_000, width=8),
    _counted("scifi_hits_per_bank", "SciFi", "SciFi hits", "bank", 500, falls=True),
    _counted("scifi_pseudo_size", "SciFi", "pseudo-size of SciFi clusters", "cluster", 8),
    _place("scifi_layer", "SciFi", "SciFi layer", SCIFI_LAYERS, place_names=_SCIFI_LAYER_NAMES),
    _place("scifi_mat", "SciFi", "SciFi mat", N_MAT_INDICES, 32),
    _measured("scifi_hit_x", "SciFi", "|x| of SciFi hits", "hit", 0, 3300, "mm"),
    _counted("muon_digits_per_event", "muon", "muon digits", "event", 4000, width=4),
    _counted("muon_hits_per_event", "muon", "muon hits", "event", 4000, width=4),
    _counted("muon_digits_per_bank", "muon", "muon digits", "bank", 800, falls=True),
    _place("muon_region", "muon", "muon station and region", N_LAYOUTS, place_names=_MUON_REGION_NAMES),
    _measured("muon_hit_x", "muon", "|x| of muon hits", "hit", 0, 5000, "mm", falls=True),
    _measured("muon_hit_y", "muon", "|y| of muon hits", "hit", 0, 5000, "mm", falls=True),
    _counted("muon_time", "muon", "TDC time of muon digits", "digit", MAX_TIME),
    _counted("particles_per_event", "truth", "particles with hits", "event", 8000, width=4),
    _counted("velo_particles_per_event", "truth", "particles seen by the VELO", "event", 2000),
    _counted("long_per_event", "truth", "long particles", "event", 600),
    _counted("downstream_per_event", "truth", "downstream particles without VELO hits", "event", 600),
    _counted("pvs_per_event", "truth", "collisions with at least 4 tracks", "event", 40),
    _counted("tracks_per_pv", "truth", "tracks of collisions", "collision", 400, falls=True),
    _measured("pv_x", "truth", "x of collisions", "collision", -1, 1, "mm"),
    _measured("pv_y", "truth", "y of collisions", "collision", -1, 1, "mm"),
    _measured("pv_z", "truth", "z of collisions", "collision", -300, 300, "mm"),
    _counted("velo_hits_per_particle", "truth", "VELO hits, particles seen by the VELO", "particle", 60),
    _counted("velo_hits_per_long", "truth", "VELO hits, long particles", "particle", 60),
    _counted("ut_hits_per_long", "truth", "UT hits, long particles", "particle", 30),
    _counted("scifi_hits_per_long", "truth", "SciFi hits, long particles", "particle", 40),
    _measured(
        "long_p", "truth", "p of long particles", "particle", 0, 100, "GeV", statistic=Statistic.MEAN, falls=True
    ),
    _measured(
        "long_pt", "truth", "$p_T$ of long particles", "particle", 0, 5, "GeV", statistic=Statistic.MEAN, falls=True
    ),
    _measured("long_eta", "truth", r"$\eta$ of long particles", "particle", 1, 6),
    _measured("long_phi", "truth", r"$\phi$ of long particles", "particle", -3.15, 3.15, "rad"),
    _measured("velo_eta", "truth", r"$\eta$ of particles seen by the VELO", "particle", -6, 6),
    _measured("velo_residual", "residuals", "VELO hit - straight line (x, y)", "hit", -100, 100, "µm"),
    _measured("ut_residual", "residuals", "UT hit - VELO straight line", "hit", -8, 8, "mm"),
    _measured("scifi_residual", "residuals", "SciFi x hit - cubic", "hit", -1000, 1000, "µm"),
]

_TRACKING = "tracking"


def _tracked(
    name: str, title: str, per: str, low: float, high: float, unit: str = "", *, statistic: Statistic = Statistic.MEAN
) -> Quantity:
    """Quantities that the tracking depends on."""
    return Quantity(
        name=name, detector=_TRACKING, title=title, per=per, low=low, high=high, bins=2000, unit=unit,
        statistic=statistic, of_tracking=True,
    )  # fmt: skip


def _fraction(name: str, title: str, per: str) -> Quantity:
    """1 for those entries that are counted, 0 for the others: the mean is their fraction."""
    return Quantity(name=name, detector=_TRACKING, title=title, per=per, low=-0.5, high=1.5, bins=2, of_tracking=True)


def _count(name: str, title: str, per: str, largest: int) -> Quantity:
    return Quantity(
        name=name, detector=_TRACKING, title=title, per=per, low=-0.5, high=largest + 0.5, bins=largest + 1,
        of_tracking=True,
    )  # fmt: skip


def _title_of_range(low: float, high: float) -> str:
    return f"above {low / 1000:g} GeV" if high == float("inf") else f"{low / 1000:g} to {high / 1000:g} GeV"


def _widths(name: str, title: str, limit: float, unit: str, per: str) -> list[Quantity]:
    """Widths by ranges of momentum."""
    return [
        _tracked(
            f"{name}_{end}", f"{title}, {_title_of_range(*bounds)}", per, -limit, limit, unit, statistic=Statistic.WIDTH
        )
        for end, bounds in MOMENTUM_RANGES.items()
    ]


_MOMENTUM_BY_SLOPE = {
    **{name: f"charge tx {low:g} to {high:g}" for name, (low, high) in BEND_RANGES.items()},
    **{name: f"|ty| {low:g} to {high:g}" for name, (low, high) in HEIGHT_RANGES.items()},
}

_OF_TRACKING = [
    _tracked(
        "velo_first_slope", "slope of the first three VELO hits - true, times p, below 10 GeV", "particle", -60, 60,
        "mrad GeV", statistic=Statistic.WIDTH,
    ),
    _tracked(
        "velo_last_slope", "slope of the last three VELO hits - true, times p, below 10 GeV", "particle", -60, 60,
        "mrad GeV", statistic=Statistic.WIDTH,
    ),
    _tracked(
        "velo_origin", "line through the VELO hits - origin, times pT, pT below 1 GeV", "particle", -300, 300,
        "µm GeV", statistic=Statistic.WIDTH,
    ),
    *_widths("ut_miss", "UT hits - flight from the VELO", 20, "mm", "particle"),
    *_widths("scifi_slope_miss", "slope in the SciFi - flight from the VELO", 40, "mrad", "particle"),
    *_widths("momentum_error", "q/p by the formula / true - 1", 20, "%", "particle"),
    *(
        _tracked(f"momentum_{name}", f"q/p by the formula / true - 1, {title}", "particle", -20, 20, "%",
                 statistic=Statistic.MEDIAN)
        for name, title in _MOMENTUM_BY_SLOPE.items()
    ),
    *_widths("scifi_curve", "SciFi hit - curve", 2000, "µm", "hit"),
    _count("scifi_layers_missed", "SciFi layers without a hit", "particle", 12),
    _fraction("scifi_double", "SciFi layers with two hits or more", "layer"),
    _fraction("scifi_5_to_8", "SciFi hits of 5 to 8 channels", "hit"),
    _fraction("scifi_above_8", "SciFi hits of more than 8 channels", "hit"),
    _fraction("scifi_outlier", "SciFi hits further than 0.5 mm from the curve, above 10 GeV", "hit"),
    _fraction("scifi_other_half", "stereo hits within 20 mm of the beam's height in the half opposite to y", "hit"),
    _count("scifi_near", "other hits within 2 mm of SciFi hits", "hit", 30),
    _tracked("window_hits", "x hits in windows of 5 GeV, per VELO track and 3,500 hits", "event", 0, 4000),
    _tracked("window_pairs", "pairs in windows, per VELO track and 3,500² hits", "event", 0, 2000),
    _tracked("window_random_triplets", "random triplets, per VELO track and 3,500³ hits", "event", 0, 500),
    _tracked("window_other_triplets", "triplets of another particle, per VELO track and 3,500 hits", "event", 0, 50),
    _count("t_hadrons", "hadrons above 3 GeV that cross the SciFi and are not long", "event", 300),
    _count("t_electrons", "such electrons from RICH1 and UT", "event", 300),
    _fraction("muon_identified", "muons with hits in the fields of interest", "particle"),
    _fraction("not_muon_identified", "others with hits in the fields of interest", "particle"),
    *(
        _fraction(f"not_muon_identified_{end}", f"the same, {_title_of_range(*bounds)}", "particle")
        for end, bounds in MUON_RANGES.items()
    ),
    *(_count(f"muon_hits_m{station}", f"hits in M{station}", "event", 4000) for station in (2, 3, 4, 5)),
]  # fmt: skip


def _of_ecal(name: str, title: str, per: str, high: float, unit: str = "") -> Quantity:
    """From 0; differences are compared with their statistical errors, as for the tracking."""
    return Quantity(
        name=name, detector="ECAL", title=title, per=per, low=0.0, high=high, bins=1000, unit=unit, of_tracking=True,
        falls=True,
    )  # fmt: skip


_OF_ECAL = [
    _of_ecal("ecal_energy", "energy of all cells", "event", 6000, "GeV"),
    _of_ecal("ecal_cells_above_10", "cells above 10 counts", "event", 6016),
    _of_ecal("ecal_cells_above_50", "cells of 50 counts and more", "event", 2000),
    _of_ecal("ecal_clusters", "clusters", "event", 1000),
    _of_ecal("ecal_photons", "photons", "event", 400),
    _of_ecal("ecal_cluster_et", "$E_T$ of clusters", "cluster", 10, "GeV"),
    _of_ecal("ecal_e19", "E19 of clusters", "cluster", 1),
    _of_ecal("ecal_hadron_eop", "E/p of long hadrons", "particle", 5),
    _of_ecal("ecal_electrons", "long electrons in the calorimeter", "event", 100),
    _of_ecal("ecal_electron_p", "p of long electrons", "particle", 100, "GeV"),
    _of_ecal("ecal_electron_eop", "E/p of long electrons", "particle", 5),
    _of_ecal("ecal_electron_shower_eop", "E/p of showers of long electrons", "particle", 5),
    _of_ecal("ecal_electron_peak", "largest cell / shower of long electrons", "particle", 1.001),
]

QUANTITIES = {quantity.name: quantity for quantity in (*_ALL, *_OF_TRACKING, *_OF_ECAL)}
"""Quantities by name. The names are keys of the JSON object, a stable contract."""
