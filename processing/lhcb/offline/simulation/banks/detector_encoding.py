"""Banks of UT, SciFi and muon stations of a chunk of events, in each version that the simulation writes."""

import itertools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import MuonGeometry, MuonStreams
from hltnode.processing.lhcb.geometry.muon_read_out import tiles_of_addresses
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import (
    DEFAULT_VERSIONS,
    VERSIONS,
    VeloEncoding,
    by_event,
)
from hltnode.processing.lhcb.offline.simulation.response.muon_response import MuonResult
from hltnode.processing.lhcb.offline.simulation.response.scifi_response import SciFiResult
from hltnode.processing.lhcb.offline.simulation.response.ut_response import UtResult
from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import (
    MUON,
    SCIFI,
    SCIFI_OF_LINKS,
    UT,
    EcalVersion,
    MuonVersion,
    SciFiVersion,
    UtVersion,
    VeloVersion,
)
from hltnode.protocol.lhcb.banks.muon import MuonDigits, encode_muon
from hltnode.protocol.lhcb.banks.muon_links import CHANNELS_OF_LINK, encode_muon_links
from hltnode.protocol.lhcb.banks.scifi import encode_scifi, hits_of_words
from hltnode.protocol.lhcb.banks.scifi_links import encode_scifi_links
from hltnode.protocol.lhcb.banks.ut import UtHits, encode_ut_v3, encode_ut_v4
from hltnode.protocol.lhcb.readout import readout_source_id
from hltnode.protocol.raw_data.raw_bank import RawBank


@dataclass(frozen=True, slots=True, kw_only=True)
class BankVersions:
    """How the banks are written: encoding and version (its default if 0) of the VELO, versions of UT, SciFi, muon
    and calorimeter banks; `readout_ids`: with the source ids of the readout boards, not only their numbers.

    Raises ValueError for a version that cannot be written.
    """

    velo: VeloEncoding = "retina"
    velo_version: int = 0
    ut_version: int = UtVersion.CLUSTERS
    scifi_version: int = SciFiVersion.VERSION_5
    muon_version: int = MuonVersion.BATCHES
    ecal_version: EcalVersion = EcalVersion.CARDS
    readout_ids: bool = False

    def __post_init__(self) -> None:
        if self.velo_version not in (0, *VERSIONS[self.velo]):
            raise ValueError(f"{self.velo} banks of version {self.velo_version}: {VERSIONS[self.velo]} can be written")
        for name, version, written in (
            ("UT", self.ut_version, UT.written[LhcbBankType.UT]),
            ("SciFi", self.scifi_version, SCIFI.written[LhcbBankType.FT_CLUSTER]),
            ("muon", self.muon_version, MUON.written[LhcbBankType.MUON]),
        ):
            if version not in written:
                known = tuple(int(each) for each in written)
                raise ValueError(f"{name} banks of version {version}: {known} can be written")

    @classmethod
    def of_data_taking(cls, *, velo: VeloEncoding = "retina", velo_version: int = 0, ut_version: int = 0) -> Self:
        """The versions that the detector sends; 0 stands for them."""
        return cls(
            velo=velo,
            velo_version=velo_version or VeloVersion.SENSOR_PAIRS,
            ut_version=ut_version or UtVersion.STRIPS,
            scifi_version=SciFiVersion.VERSION_8,
            muon_version=MuonVersion.LINKS,
            ecal_version=EcalVersion.LITTLE_ENDIAN,
            readout_ids=True,
        )

    @property
    def velo_bank_version(self) -> int:
        """Of the VELO banks."""
        return self.velo_version or DEFAULT_VERSIONS[self.velo]


def ut_banks(result: UtResult, version: int, n_events: int) -> list[list[RawBank]]:
    """The UT banks of each event."""
    if version == UtVersion.CLUSTERS:
        return by_event(encode_ut_v3(result.hits, result.charges, result.event, n_events), n_events)
    edges = np.searchsorted(result.event, np.arange(n_events + 1)).tolist()
    names = ("board", "lane", "strip", "fraction", "flags", "adc")
    return [
        encode_ut_v4(UtHits(*(getattr(result.hits, name)[a:b] for name in names))) for a, b in itertools.pairwise(edges)
    ]


class SciFiEncoder:
    """Writes the SciFi banks of a geometry. Raises ValueError if it has no read-out of this version."""

    def __init__(self, geometry: SciFiGeometry, version: int) -> None:
        if version in SCIFI_OF_LINKS and geometry.sipms is None:
            raise ValueError(f"SciFi banks of version {version}: the geometry lists no SiPMs")
        if version not in SCIFI_OF_LINKS and not len(geometry.first_channel):
            raise ValueError(f"SciFi banks of version {version}: the geometry lists SiPMs, write version 7 or 8")
        self._geometry = geometry
        self._version = version

    def banks(self, result: SciFiResult, n_events: int) -> list[list[RawBank]]:
        """The SciFi banks of each event."""
        sipms = self._geometry.sipms
        if self._version not in SCIFI_OF_LINKS or sipms is None:
            return by_event(encode_scifi(result.words, result.event, n_events), n_events)
        hits, word = hits_of_words(result.words)
        chosen, of_links = sipms.link_hits(hits, self._geometry.numbering)
        event = result.event[word[chosen]]
        return by_event(encode_scifi_links(of_links, sipms.source.tolist(), self._version, event, n_events), n_events)


def with_batches(geometry: MuonGeometry) -> MuonGeometry:
    """The geometry with the read-out by batches, which the response numbers its channels by; the real one if it has
    none."""
    if geometry.links is None:
        return geometry
    return replace(geometry, tile_of_address=tiles_of_addresses(), links=None, streams=geometry.of_links)


class MuonEncoder:
    """Writes the muon banks of a geometry. Raises ValueError if it has no read-out of this version."""

    def __init__(self, geometry: MuonGeometry, version: int) -> None:
        if version == MuonVersion.BATCHES and geometry.links is not None:
            raise ValueError(f"muon banks of version {version}: the geometry has the read-out of version 3")
        self._streams = geometry.of_links if version == MuonVersion.LINKS else None
        if version == MuonVersion.LINKS and self._streams is None:
            raise ValueError(f"muon banks of version {version}: the geometry has the read-out of version 2")
        addresses = with_batches(geometry).tile_of_address
        self._first = np.cumsum([0, *map(len, addresses)])
        if self._streams is not None:
            self._channel = _channels(np.concatenate(addresses), self._streams)

    def banks(self, result: MuonResult, n_events: int) -> list[list[RawBank]]:
        """The muon banks of each event. Digits that no stream reads are left out."""
        digits = result.digits
        if self._streams is None:
            encoded = encode_muon(digits, result.pads, result.event, result.pad_event, n_events)
            return by_event(encoded, n_events)
        channel = self._channel[self._first[digits.bank] + digits.address]
        read = channel >= 0
        stream, address = np.divmod(channel[read], len(self._streams.tile_of_channel[0]))
        columns = (stream, address // CHANNELS_OF_LINK, address, digits.time[read])
        stream, link, address, time = (column.astype(np.uint32) for column in columns)
        edges = np.searchsorted(result.event[read], np.arange(n_events + 1)).tolist()
        links = self._streams.links.tolist()
        return [
            encode_muon_links(MuonDigits(stream[a:b], link[a:b], address[a:b], time[a:b]), links)
            for a, b in itertools.pairwise(edges)
        ]


def _channels(tiles: NDArray[np.uint32], streams: MuonStreams) -> Int64Array:
    """The channel (counted over all streams) that reads each tile; -1 for none."""
    of_channel = np.concatenate(streams.tile_of_channel)
    order = np.argsort(of_channel, kind="stable")
    at = np.minimum(np.searchsorted(of_channel[order], tiles), len(of_channel) - 1)
    return np.where((of_channel[order][at] == tiles) & (tiles != 0), order[at], -1)


def with_readout_id(bank: RawBank) -> RawBank:
    """The bank with the source id of its readout board."""
    source = readout_source_id(bank)
    return bank if source is None else bank._replace(source_id=source)
