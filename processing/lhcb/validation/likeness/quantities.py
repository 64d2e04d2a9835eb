"""All quantities of the likeness report, by detector."""

from hltnode.processing.lhcb.geometry.ideal_scifi import N_LAYERS as SCIFI_LAYERS
from hltnode.processing.lhcb.geometry.ideal_scifi import N_MAT_INDICES
from hltnode.processing.lhcb.geometry.ideal_ut import N_SECTORS
from hltnode.processing.lhcb.geometry.ideal_velo import SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.muon import N_LAYOUTS
from hltnode.processing.lhcb.validation.likeness.distribution import Quantity
from hltnode.protocol.lhcb.banks.muon import MAX_TIME
from hltnode.protocol.lhcb.banks.velo import N_SENSORS
from hltnode.protocol.raw_data.raw_bank import BankType

BANKS = {
    BankType.VP_RETINA_CLUSTER: ("VELO", "retina", "retina cluster", 2000),
    BankType.VP: ("VELO", "superpixel", "super-pixel", 2000),
    BankType.UT: ("UT", "ut", "UT", 1000),
    BankType.FT_CLUSTER: ("SciFi", "scifi", "SciFi", 1000),
    BankType.MUON: ("muon", "muon", "muon", 2000),
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
        name=name, detector=detector, title=title, per="hit", low=-0.5, high=n - 0.5, bins=n, means_alike=False,
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
    means_alike: bool = False,
    falls: bool = False,
) -> Quantity:
    return Quantity(
        name=name, detector=detector, title=title, per=per, low=low, high=high, bins=1000, unit=unit,
        means_alike=means_alike, falls=falls,
    )  # fmt: skip


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
    _measured("long_p", "truth", "p of long particles", "particle", 0, 100, "GeV", means_alike=True, falls=True),
    _measured("long_pt", "truth", "$p_T$ of long particles", "particle", 0, 5, "GeV", means_alike=True, falls=True),
    _measured("long_eta", "truth", r"$\eta$ of long particles", "particle", 1, 6),
    _measured("long_phi", "truth", r"$\phi$ of long particles", "particle", -3.15, 3.15, "rad"),
    _measured("velo_eta", "truth", r"$\eta$ of particles seen by the VELO", "particle", -6, 6),
    _measured("velo_residual", "residuals", "VELO hit - straight line (x, y)", "hit", -100, 100, "µm"),
    _measured("ut_residual", "residuals", "UT hit - VELO straight line", "hit", -8, 8, "mm"),
    _measured("scifi_residual", "residuals", "SciFi x hit - cubic", "hit", -1000, 1000, "µm"),
]

QUANTITIES = {quantity.name: quantity for quantity in _ALL}
"""By name: the keys of the JSON object, a stable contract."""
