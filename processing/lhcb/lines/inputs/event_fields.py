"""The input of lines on the event as a whole, and its fields."""

from hltnode.processing.algorithms.decode_odin import odin
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_count as ecal_cluster_count,
)
from hltnode.processing.lhcb.calorimeter.collections import (
    dielectron_count,
    ecal_energy,
    ecal_max_adc,
    electron_count,
    photon_pair_count,
)
from hltnode.processing.lhcb.jets.collections import jet_count
from hltnode.processing.lhcb.muon.collections import (
    muon_count,
)
from hltnode.processing.lhcb.primary_vertices.collections import pv_count
from hltnode.processing.lhcb.primary_vertices.halves.collections import half_pair_count
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.lhcb.scifi.collections import scifi_count
from hltnode.processing.lhcb.secondary_vertices.collections import (
    vertex_count,
)
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
)
from hltnode.processing.lhcb.velo.collections import (
    cluster_count,
    track_count,
)
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.units import ENERGY
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    Input,
)


def _without(name: str, mask: int) -> DerivedField:
    return DerivedField(lambda e: (e.flags & mask) == 0, f"true for events without the flag {name}")


event = Input(
    "events",
    "the event as a whole",
    {
        **{
            name: ColumnField(odin, text, member=name)
            for name, text in {
                "run": "run",
                "event_type": "bits of the ODIN event type",
                "crossing_type": "0 no beam, 1 beam 1, 2 beam 2, 3 both",
                "bunch_id": "bunch crossing",
                "orbit": "orbit of the LHC since the start of the run",
                "tae_half_window": "number of crossings on either side that are read out with this one",
                "gps_time_low": "lower word of the time in µs",
                "gps_time_high": "upper word of the time in µs",
                "event_id_low": "lower word of the event number",
                "event_id_high": "upper word of the event number",
            }.items()
        },
        "flags": ColumnField(event_flags, "flags of the event, one bit each"),
        "_tae_central": ColumnField(odin, "1 for the central one of several crossings", member="tae_central"),
        "is_tae_central": DerivedField(lambda e: e._tae_central != 0, "true for the central one of several crossings"),
        "has_odin": _without("odin_error", int(EventFlag.ODIN_ERROR)),
        "passes_gec": _without(GLOBAL_EVENT_CUT.name, GLOBAL_EVENT_CUT.mask),
        "n_velo_clusters": ColumnField(cluster_count, "VELO clusters"),
        "n_velo_tracks": ColumnField(track_count, "VELO tracks"),
        "n_pvs": ColumnField(pv_count, "primary vertices"),
        "n_half_pairs": ColumnField(half_pair_count, "pairs of vertices of both VELO halves"),
        "n_scifi_hits": ColumnField(scifi_count, "SciFi hits"),
        "n_muon_hits": ColumnField(muon_count, "muon hits"),
        "n_long_tracks": ColumnField(long_count, "long tracks"),
        "n_vertices": ColumnField(vertex_count, "two-track vertices"),
        "n_ecal_clusters": ColumnField(ecal_cluster_count, "clusters of the electromagnetic calorimeter"),
        "n_electrons": ColumnField(electron_count, "long tracks with the energy of an electron"),
        "n_photon_pairs": ColumnField(photon_pair_count, "pairs of photons"),
        "n_dielectrons": ColumnField(dielectron_count, "vertices of two electrons"),
        "n_jets": ColumnField(jet_count, "jets"),
        "ecal_energy": ColumnField(ecal_energy, "energy of all cells of the electromagnetic calorimeter", ENERGY),
        "ecal_max_adc": ColumnField(ecal_max_adc, "largest ADC count of a cell of the electromagnetic calorimeter"),
    },
)

EVENT_WORDS: tuple[Expression, ...] = tuple(
    getattr(event.candidate(), name)
    for name in ("gps_time_low", "gps_time_high", "run", "event_id_low", "event_id_high")
)
"""The words that identify an event for prescales, in the order of LHCb."""
