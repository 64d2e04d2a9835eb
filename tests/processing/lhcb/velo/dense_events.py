"""The most expensive events: noise, hits crowded in phi, super-pixels that collide in the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.velo.collections import N_MODULE_PAIRS, PHI_BIN_BITS
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import (
    N_COLUMNS,
    N_ROWS,
    N_SENSORS,
    SUPERPIXEL_COLUMNS,
    SUPERPIXEL_ROWS,
    RetinaClusters,
    SuperPixels,
    encode_retina_clusters,
    encode_superpixels,
)
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

RETINA_VERSION, SUPER_PIXEL_VERSION = 3, 2
SENSORS_PER_PAIR = N_SENSORS // N_MODULE_PAIRS
SUPER_PIXELS = (N_SENSORS, N_COLUMNS // SUPERPIXEL_COLUMNS, N_ROWS // SUPERPIXEL_ROWS)
FIRST_CROWDED_BIN = 20
HASH_FACTOR = 2654435769
PIXELS_TRIED = 100_000
"""Hits of each module pair: enough to fill a bin of phi."""

VELO_BANKS = {LhcbBankType.VP, LhcbBankType.VP_RETINA_CLUSTER}

Integers = NDArray[np.integer]


def noise(n: int, seed: int = 1) -> list[RawBank]:
    """Retina clusters at random places, the same number on each sensor."""
    rng = np.random.default_rng(seed)
    places = [rng.integers(0, size, n) for size in (N_COLUMNS, N_ROWS)]
    return _retina(np.arange(n) % N_SENSORS, *places)


def crowded_in_phi(n: int, n_bins: int, geometry: VeloGeometry, seed: int = 1) -> list[RawBank]:
    """Up to n retina clusters, those of each module pair spread evenly over the same few bins of phi."""
    rng = np.random.default_rng(seed)
    of_bin = n // N_MODULE_PAIRS // n_bins
    chosen: list[tuple[Integers, Integers, Integers]] = []
    for pair in range(N_MODULE_PAIRS):
        pixels = rng.choice(SENSORS_PER_PAIR * N_COLUMNS * N_ROWS, PIXELS_TRIED, replace=False)
        sensor, column, row = np.unravel_index(pixels, (SENSORS_PER_PAIR, N_COLUMNS, N_ROWS))
        sensor = sensor + SENSORS_PER_PAIR * pair
        xyz = geometry.local_to_global(sensor, column, row)
        phi = np.arctan2(xyz[:, 1], xyz[:, 0]) / (2 * np.pi) + 0.5
        bins = (phi * (1 << PHI_BIN_BITS)).astype(np.int64)
        for wanted in range(FIRST_CROWDED_BIN, FIRST_CROWDED_BIN + n_bins):
            inside = np.flatnonzero(bins == wanted)
            picked = rng.choice(inside, min(of_bin, len(inside)), replace=False)
            chosen.append((sensor[picked], column[picked], row[picked]))
    sensor, column, row = (np.concatenate(values) for values in zip(*chosen, strict=True))
    order = np.argsort(sensor, kind="stable")
    return _retina(sensor[order], column[order], row[order])


def overlaid(events: Sequence[Sequence[RawBank]]) -> list[RawBank]:
    """One event with the clusters of several: VELO banks with a count (versions 2 and 3); the rest is the first's."""
    words: dict[tuple[int, int], list[bytes]] = {}
    for event in events:
        for bank in event:
            if bank.type in VELO_BANKS:
                words.setdefault((bank.type, bank.source_id), []).append(bytes(bank.payload[4:]))
    merged: list[RawBank] = []
    for bank in events[0]:
        if bank.type in VELO_BANKS:
            content = b"".join(words[bank.type, bank.source_id])
            payload = (len(content) // 4).to_bytes(4, "little") + content
            merged.append(bank._replace(payload=memoryview(payload)))
        else:
            merged.append(bank)
    return merged


def super_pixel_noise(n: int, seed: int = 1, *, isolated: bool = True) -> list[RawBank]:
    """Super-pixels of one pixel at random places, all with the same mark."""
    keys = np.random.default_rng(seed).choice(np.prod(SUPER_PIXELS), n, replace=False)
    return _super_pixels(np.sort(keys), isolated=isolated)


def colliding_super_pixels(n: int, groups: int = 1, of_group: int = 1 << 20) -> list[RawBank]:
    """n super-pixels of one pixel, isolated or crowded in the table of their event.

    Those that are not isolated start at consecutive places of the table, in `groups` of at most `of_group`, as far
    apart as the table allows. The others are isolated."""
    bits = table_bits(n)
    keys = np.random.default_rng(1).choice(np.prod(SUPER_PIXELS), 1 << 20, replace=False)
    keys = keys[np.argsort(first_places(keys, bits), kind="stable")]
    begins = np.searchsorted(first_places(keys, bits), np.arange(groups) * ((1 << bits) // groups))
    colliding = np.zeros(len(keys), np.bool_)
    for begin in begins:
        colliding[begin : begin + min(n // groups, of_group)] = True
    others = np.flatnonzero(~colliding)[:: len(keys) // n][: n - np.count_nonzero(colliding)]
    chosen = np.sort(np.concatenate([np.flatnonzero(colliding), others]))
    order = np.argsort(keys[chosen])
    return _super_pixels(keys[chosen][order], isolated=~colliding[chosen][order])


def table_bits(n: int) -> int:
    """Bits of the number of places in the table of an event whose super-pixels have n candidates."""
    return int(np.log2(4 * n))


def first_places(keys: Integers, bits: int) -> Integers:
    """Place where the search for a super-pixel starts in a table of 2^bits places."""
    sensor, column, row = np.unravel_index(keys, SUPER_PIXELS)
    return ((sensor << 15 | column << 6 | row) + 1) * HASH_FACTOR % 2**32 >> (32 - bits)


def _retina(sensor: Integers, column: Integers, row: Integers) -> list[RawBank]:
    zeros = np.zeros(len(sensor), np.uint32)
    sensor, column, row = (values.astype(np.uint32) for values in (sensor, column, row))
    clusters = RetinaClusters(sensor, column, row, zeros, zeros, zeros, 2)
    return [_odin(), *encode_retina_clusters(clusters, RETINA_VERSION)]


def _super_pixels(keys: Integers, *, isolated: bool | NDArray[np.bool_]) -> list[RawBank]:
    sensor, column, row = (values.astype(np.uint32) for values in np.unravel_index(keys, SUPER_PIXELS))
    pattern = np.ones(len(keys), np.uint32)
    alone = np.broadcast_to(np.asarray(isolated, np.uint32), pattern.shape)
    return [_odin(), *encode_superpixels(SuperPixels(sensor, column, row, pattern, alone), SUPER_PIXEL_VERSION)]


def _odin() -> RawBank:
    return encode_odin(Odin(run=1, event_id=1))
