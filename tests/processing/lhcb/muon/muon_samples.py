"""Events with muon banks: simulated ones, made-up digits, and the same digits in banks of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.protocol.lhcb.banks.muon import MuonDigits, MuonPads, batch_of, encode_muon
from hltnode.protocol.lhcb.banks.muon_links import CHANNELS_OF_LINK, MAX_LINKS, N_STREAMS, encode_muon_links
from hltnode.protocol.raw_data.raw_bank import RawBank

BUILTIN = MuonGeometry.builtin()
_CHANNELS = MAX_LINKS * CHANNELS_OF_LINK


@cache
def simulated_events(n: int, sample: str = "minbias", seed: int = 4) -> list[list[RawBank]]:
    """Events of all detectors."""
    detector = Detector.builtin()
    return list(FullSimulation(detector, sample_source(sample, 7.6, detector.velo.beamline)).events(n, seed))


def random_digits(rng: np.random.Generator, n: int, *, twice: int = 0) -> MuonDigits:
    """Digits of one quarter of a station and elsewhere, so that many strips cross; `twice`: number of repeated
    digits."""
    bank = np.where(rng.random(n) < 0.7, 4, rng.integers(0, 10, n)).astype(np.uint32)
    address = rng.integers(0, np.where(bank == 4, 400, 3072)).astype(np.uint32)
    bank, address = np.unique(np.stack([bank, address]), axis=1)
    again = rng.integers(0, len(bank), twice)
    bank, address = np.append(bank, bank[again]), np.append(address, address[again])
    return MuonDigits(bank, batch_of(bank, address), address, rng.integers(0, 16, len(bank)).astype(np.uint32))


def all_digits() -> MuonDigits:
    """A digit of every address of banks of version 2."""
    sizes = [len(tiles) for tiles in BUILTIN.tile_of_address]
    bank = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
    address = np.concatenate([np.arange(n, dtype=np.uint32) for n in sizes])
    return MuonDigits(bank, batch_of(bank, address), address, address % np.uint32(16))


def taken(digits: MuonDigits, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> MuonDigits:
    """Some of the digits."""
    return MuonDigits(*(getattr(digits, name)[chosen] for name in ("bank", "batch", "address", "time")))


def banks_of(digits: MuonDigits) -> list[RawBank]:
    """Banks of version 2, with a few pads."""
    return encode_muon(digits, MuonPads(np.array([3, 4, 4], np.uint32), np.array([7, 8, 9], np.uint32)))


@cache
def links_geometry() -> MuonGeometry:
    """The built-in stations, read out by links: the tiles in a special order, some channels without a tile."""
    tiles = np.concatenate(BUILTIN.tile_of_address)
    tiles = np.random.default_rng(8).permutation(tiles[tiles != 0])
    links = np.array([9 if stream % 7 else 0 for stream in range(N_STREAMS)], np.uint32)
    channels = np.zeros((N_STREAMS, _CHANNELS), np.uint32)
    active = np.flatnonzero(
        np.arange(N_STREAMS * _CHANNELS) % _CHANNELS < CHANNELS_OF_LINK * np.repeat(links, _CHANNELS)
    )
    used = np.sort(np.random.default_rng(9).choice(active, min(len(tiles), len(active)), replace=False))
    channels.ravel()[used] = tiles[: len(used)]
    return replace(BUILTIN, tile_of_address=tuple(channels), links=links)


def as_links(digits: MuonDigits) -> MuonDigits:
    """Digits of banks of version 2 converted to links_geometry; tiles that it does not read out are left out."""
    geometry = links_geometry()
    sizes = np.array([len(tiles) for tiles in BUILTIN.tile_of_address])
    bank = digits.bank.astype(np.int64)
    address = np.where(digits.address < sizes[bank], digits.address, sizes.sum())
    place = np.minimum(np.cumsum(sizes)[bank] - sizes[bank] + address, sizes.sum())
    tile = np.append(np.concatenate(BUILTIN.tile_of_address), np.uint32(0))[place]
    known = np.isin(tile, np.concatenate(geometry.tile_of_address)) & (tile != 0)
    stream, channel = geometry.address_of_tile(tile[known])
    return MuonDigits(stream, channel // np.uint32(CHANNELS_OF_LINK), channel, digits.time[known])


def link_banks_of(digits: MuonDigits, *, with_maps: bool = False) -> list[RawBank]:
    """Banks of version 3 for links_geometry."""
    links: Sequence[int] = links_geometry().links.tolist()  # type: ignore[union-attr]
    connected = [range(n) for n in links] if with_maps else None
    return encode_muon_links(digits, links, connected=connected)
