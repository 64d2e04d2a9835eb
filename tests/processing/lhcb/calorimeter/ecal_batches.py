"""Runs the calorimeter's algorithms on banks and given tracks, and makes banks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.batch import (
    BATCH_HEADER,
    EVENT_ROW,
    MFP_ROW,
    N_SUBDETECTORS,
    ROW_RANGE,
    BatchTables,
    MepInBatch,
)
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.framework.offline_runner import encode_mep as encode
from hltnode.processing.lhcb.calorimeter.collections import ECAL_GEOMETRY, MAX_CLUSTERS_PER_EVENT
from hltnode.processing.lhcb.calorimeter.decode_cells import decode_cells
from hltnode.processing.lhcb.calorimeter.electron_network import ELECTRON_NETWORK, ElectronNetwork
from hltnode.processing.lhcb.calorimeter.find_clusters import find_clusters
from hltnode.processing.lhcb.calorimeter.find_electrons import find_electrons
from hltnode.processing.lhcb.calorimeter.identify_electrons import identify_electrons
from hltnode.processing.lhcb.calorimeter.measure_showers import measure_showers
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.ecal import BOARDS_VERSION, CARDS_VERSION, EMPTY_SLOT, EcalGeometry
from hltnode.processing.lhcb.geometry.ideal_ecal import N_CELLS
from hltnode.processing.lhcb.tracks.long.collections import MAX_TRACKS_PER_EVENT, Z_END_SCIFI
from hltnode.protocol import iter_records
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import EcalBoards, EcalCards, encode_ecal_boards, encode_ecal_cards
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import Launch, run_algorithms

MDF = "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
CLUSTER_COLUMNS = ("seed", "x", "y", "energy", "et", "e19")
SHOWER_COLUMNS = tuple(f"shower_{name}" for name in ("energy", "dx", "dy", "spread_x", "spread_y", "peak"))
TRACK_COLUMNS = (
    *("in_ecal", "ecal_energy", "eop", "is_electron", "brem_energy", "brem_et"),
    *("ecal_cell", *SHOWER_COLUMNS, "electron_nn"),
)
NO_FLAG = EventFlag(0)
BUILTIN = replace(EcalGeometry.builtin(), read_out=CARDS_VERSION, boards=None, board_cards=None)
"""The built-in cells, read out by cards alone."""


@functools.cache
def with_boards() -> EcalGeometry:
    """The built-in cells, read out by boards: 63 sources of three, with an empty slot in front in the last one."""
    boards = np.arange(1, 190, dtype=np.int32).reshape(-1, 3)
    cards = np.arange(189, dtype=np.int32).reshape(-1, 3)
    boards[-1, 0] = 0
    cards[-1] = EMPTY_SLOT, 186, 187
    return replace(BUILTIN, read_out=BOARDS_VERSION, code_offset=0, boards=boards, board_cards=cards)


def real_events(shared: Path) -> list[list[RawBank]]:
    return [list(record.banks()) for record in iter_records((shared / MDF).read_bytes())]


def random_adc(rng: np.random.Generator, occupancy: float = 0.2, mean: float = 60.0) -> NDArray[np.int64]:
    """Noise in all cells, an exponential energy in some of them."""
    adc = rng.normal(0.4, 1.2, N_CELLS)
    adc += (rng.random(N_CELLS) < occupancy) * rng.exponential(mean, N_CELLS)
    return np.clip(np.rint(adc), -256, 3839).astype(np.int64)


def cards_of(adc: NDArray[np.int64]) -> EcalCards:
    """The cards of the built-in calorimeter: 7 in a bank."""
    values = adc.reshape(-1, 32)
    n = len(values)
    return EcalCards(
        source=(np.arange(n) // 7).astype(np.uint32),
        code=(np.arange(n) + BUILTIN.code_offset).astype(np.uint32),
        adc=values.astype(np.int16),
        is_long=np.zeros((n, 32), np.bool_),
        trigger=(bytes(5),) * n,
    )


def boards_of(adc: NDArray[np.int64]) -> EcalBoards:
    """The boards of with_boards()."""
    slots = np.argwhere(with_boards().slot_cards() != 0xFFFF)
    cards = with_boards().slot_cards()[slots[:, 0], slots[:, 1]]
    place = np.where(slots[:, 0] == 62, slots[:, 1] - 1, slots[:, 1])
    return EcalBoards(
        slots[:, 0].astype(np.uint32), place.astype(np.uint32), adc.reshape(-1, 32)[cards].astype(np.int16)
    )


def card_banks(adc: NDArray[np.int64]) -> list[RawBank]:
    return encode_ecal_cards(cards_of(adc), n_sources=27)


def with_ecal(events: Sequence[Sequence[RawBank]], seed: int) -> list[list[RawBank]]:
    """Simulated events, with random energies in place of those of their calorimeter: enough for electrons."""
    rng = np.random.default_rng(seed)
    others = [[bank for bank in banks if bank.type != LhcbBankType.ECAL_PACKED] for banks in events]
    return [[*banks, *card_banks(random_adc(rng, 0.3, 400.0))] for banks in others]


def board_banks(adc: NDArray[np.int64], version: int = 5) -> list[RawBank]:
    return encode_ecal_boards(boards_of(adc), EcalVersion(version))


@dataclass(frozen=True, slots=True, eq=False)
class EcalEvent:
    """Output for one event."""

    flags: int
    n_cells: int
    energy: float
    energy_mev: int
    adc: NDArray[np.int16]
    clusters: dict[str, NDArray[Any]]
    tracks: dict[str, NDArray[Any]]
    n_electrons: int
    max_adc: int

    def same_as(self, other: EcalEvent) -> bool:
        """Whether both events are equal bit by bit."""
        return (
            (self.flags, self.n_cells, self.energy_mev, self.n_electrons, self.max_adc)
            == (other.flags, other.n_cells, other.energy_mev, other.n_electrons, other.max_adc)
            and np.float32(self.energy).tobytes() == np.float32(other.energy).tobytes()
            and self.adc.tobytes() == other.adc.tobytes()
            and all(self.clusters[name].tobytes() == other.clusters[name].tobytes() for name in CLUSTER_COLUMNS)
            and all(self.tracks[name].tobytes() == other.tracks[name].tobytes() for name in TRACK_COLUMNS)
        )


@dataclass(frozen=True, slots=True, eq=False)
class EcalBatch:
    """Events with long tracks f64[n, 5] per event: x, y, tx, ty at the end of the SciFi tracker, q/p in 1/MeV.

    Each long track has a VELO track of its own: f64[n, 5], x, y, z, tx, ty at the beam; that of the long track if not
    given."""

    mep: EncodedMep
    geometry: EcalGeometry = BUILTIN
    tracks: Sequence[NDArray[np.float64]] = ()
    velo: Sequence[NDArray[np.float64]] = ()
    flags: EventFlag = NO_FLAG
    constants: tuple[tuple[str, float], ...] = ()

    def run(self, launch: Launch | None = None, *, fill: int = 0xAA) -> list[EcalEvent]:
        """In memory whose bytes start as `fill`."""
        n = self.mep.n_events
        limits = BatchLimits(
            events=n,
            meps=1,
            # 2,000 VELO tracks fit in 32 kB.
            input_bytes=-(-self.mep.data.nbytes // 8) * 8 + n * 32_768,
            rows=max(len(self.mep.fragments), 1),
        )
        chosen = dict(self.constants)
        algorithms = [
            each.with_constants({name: value for name, value in chosen.items() if name in names})
            for each in (decode_cells, find_clusters, find_electrons, measure_showers, identify_electrons)
            for names in [{constant.name for constant in each.constants}]
        ]
        columns = run_algorithms((fragment_offsets, *algorithms), self._given(), n, limits, launch, fill=fill)
        return [self._event(columns, event) for event in range(n)]

    def _given(self) -> dict[str, NDArray[Any]]:
        n, mep = self.mep.n_events, self.mep
        tables = BatchTables(
            header=np.zeros(1, BATCH_HEADER.dtype),
            mfp_rows=np.zeros(len(mep.fragments), MFP_ROW.dtype),
            mep_rows=np.zeros((1, N_SUBDETECTORS), ROW_RANGE.dtype),
            event_rows=np.zeros(n, EVENT_ROW.dtype),
            event_flags=np.zeros(n, np.uint32),
        )
        tables.fill([MepInBatch(n, mep.fragments, self.flags)], mep.data)
        count = np.zeros(n, np.uint32)
        long = np.zeros((5, n, MAX_TRACKS_PER_EVENT))
        velo = np.zeros((5, n, MAX_TRACKS_PER_EVENT))
        for event, of_event in enumerate(self.tracks):
            count[event] = len(of_event)
            long[:, event, : len(of_event)] = of_event.T
            x, y, tx, ty, _ = of_event.T
            velo[:, event, : len(of_event)] = (
                self.velo[event].T if self.velo else (x, y, np.full(len(x), Z_END_SCIFI), tx, ty)
            )
        velo_track = np.tile(np.arange(MAX_TRACKS_PER_EVENT), n)
        return {
            "input.bytes": mep.data,
            "input.mfp_rows": tables.mfp_rows,
            "input.mep_rows": tables.mep_rows,
            "input.event_rows": tables.event_rows,
            "events.flags": tables.event_flags,
            "ecal_geometry": np.frombuffer(_geometry_bytes(self.geometry), ECAL_GEOMETRY.dtype),
            "electron_network": np.frombuffer(ElectronNetwork.builtin().to_bytes(), ELECTRON_NETWORK.dtype),
            "velo_clusters.offset": 2 * MAX_TRACKS_PER_EVENT * np.arange(n + 1),
            "long_tracks.count": count,
            "long_tracks.velo_track": velo_track,
            **{f"long_tracks.{name}": long[i] for i, name in enumerate(("x", "y", "tx", "ty", "qop"))},
            **{f"velo_beamline.{name}": velo[i] for i, name in enumerate(("x", "y", "z", "tx", "ty"))},
        }

    def _event(self, columns: dict[str, NDArray[Any]], event: int) -> EcalEvent:
        first = event * MAX_CLUSTERS_PER_EVENT
        last = first + int(columns["ecal_clusters.count"][event])
        first_track = event * MAX_TRACKS_PER_EVENT
        last_track = first_track + int(columns["long_tracks.count"][event])
        return EcalEvent(
            flags=int(columns["events.flags"][event]),
            n_cells=int(columns["events.ecal_cells"][event]),
            energy=float(columns["events.ecal_energy"][event]),
            energy_mev=int(columns["events.ecal_energy_mev"][event]),
            adc=columns["events.ecal_adc"].reshape(-1, N_CELLS)[event],
            clusters={name: columns[f"ecal_clusters.{name}"][first:last] for name in CLUSTER_COLUMNS},
            tracks={name: columns[f"long_tracks.{name}"][first_track:last_track] for name in TRACK_COLUMNS},
            n_electrons=int(columns["events.electrons"][event]),
            max_adc=int(columns["events.ecal_max_adc"][event]),
        )


@functools.lru_cache(maxsize=4)
def _geometry_bytes(geometry: EcalGeometry) -> bytes:
    return geometry.to_bytes()


def encode_mep(events: Sequence[Sequence[RawBank]]) -> EncodedMep:
    """The calorimeter's banks of events as the MFPs of one MEP."""
    own = [[bank for bank in banks if bank.type in (21, 77)] for banks in events]
    return encode(CHAIN.with_sequence("hlt1_2026"), own)


def random_lines(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """f64[n, 5]: tracks in and around the calorimeter, 2 to 40 GeV."""
    x, y = rng.uniform(-3500.0, 3500.0, n), rng.uniform(-2700.0, 2700.0, n)
    slopes = np.array([x, y]) / Z_END_SCIFI + rng.normal(0.0, 0.03, (2, n))
    return np.column_stack([x, y, *slopes, rng.choice([-1.0, 1.0], n) / rng.uniform(2000.0, 40000.0, n)])
