"""Sizes of VELO clusters and large clusters of tracks in slow and simple code (docs/physics/large-clusters.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.velo.collections import RetinaPattern
from hltnode.processing.lhcb.velo.decoding.retina_sizes import fractions_of, patterns_of
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.velo.decoding_oracle import Pixel, connected_components, lit_pixels, masked_clusters

CUTS = {"min_pixels": 4, "min_hits": 5, "max_slope": 0.0136}
"""The constants of the algorithm."""


def sizes_of(banks: Sequence[RawBank]) -> dict[int, int]:
    """Number of pixels by LHCbID; the largest of several clusters, 0 where a retina word does not hold it."""
    found: dict[int, int] = {}
    for lhcb_id, n in (*_of_super_pixels(banks), *_of_retina_words(banks)):
        found[lhcb_id] = max(found.get(lhcb_id, 0), n)
    return found


def _of_super_pixels(banks: Sequence[RawBank]) -> list[tuple[int, int]]:
    isolated, lit = lit_pixels(banks)
    clusters = [(sensor, cluster) for sensor, pixels in isolated for cluster in connected_components(pixels)]
    clusters += [(sensor, cluster) for sensor, pixels in lit.items() for cluster in masked_clusters(pixels)]
    return [(_id(sensor, cluster), len(cluster)) for sensor, cluster in clusters]


def _id(sensor: int, pixels: set[Pixel]) -> int:
    column, row = (sum(pixel[axis] for pixel in pixels) // len(pixels) for axis in range(2))
    return 2 << 28 | sensor << 18 | column << 8 | row


@cache
def _retina_sizes() -> Mapping[tuple[int, int, int, int], int]:
    """By kind, number of the pattern, fraction in x and in y."""
    sizes: dict[tuple[int, int, int, int], int] = {}
    for kind in RetinaPattern:
        for pixels in patterns_of(kind):
            x, y = fractions_of(pixels)
            number = sum(it[0] == kind and it[2:] == (x, y) for it in sizes)
            sizes[kind, number, x, y] = len(pixels)
    return sizes


def _of_retina_words(banks: Sequence[RawBank]) -> list[tuple[int, int]]:
    own = [bank for bank in banks if bank.type == LhcbBankType.VP_RETINA_CLUSTER]
    it = decode_retina_clusters(own)
    version = own[0].version if own else 0
    columns = (it.sensor, it.column, it.row, it.fraction_x, it.fraction_y, it.flags)
    found = []
    for sensor, column, row, x, y, flags in zip(*(values.tolist() for values in columns), strict=True):
        lhcb_id = 2 << 28 | (x != 0) << 27 | (y != 0) << 26 | sensor << 18 | column << 8 | row
        bits = flags >> 1  # from bit 23 of the word on
        if bits >> 7 & 1:
            kind, number = RetinaPattern.RETINA_ISOLATED, bits & 63
        elif sensor % 4 in (0, 3):
            kind, number = RetinaPattern.RETINA_SQUARE, bits & 31
        else:
            kind, number = RetinaPattern.RETINA_SQUARE_REVERSED, bits & 31
        found.append((lhcb_id, 0 if version == 2 or bits == 0 else _retina_sizes().get((kind, number, x, y), 0)))
    return found


@dataclass(frozen=True, slots=True)
class OracleTrack:
    """A VELO track: its hits, slopes and direction."""

    hits: tuple[int, ...]
    tx: float
    ty: float
    backward: bool


def large_clusters(
    sizes: Mapping[int, int], ids: NDArray[np.uint32], tracks: Sequence[OracleTrack], cuts: Mapping[str, float]
) -> tuple[list[int], list[int]]:
    """Pixels of each hit, 0 for hits of no counted track, and large clusters of each track."""
    slope = np.float32(cuts["max_slope"])
    pixels, large = [0] * len(ids), []
    for track in tracks:
        tx, ty = np.float32(track.tx), np.float32(track.ty)
        counts = not track.backward and len(track.hits) >= cuts["min_hits"] and bool(tx * tx + ty * ty <= slope * slope)
        own = [min(sizes.get(int(ids[hit]), 0), 255) if counts else 0 for hit in track.hits]
        for hit, n in zip(track.hits, own, strict=True):
            pixels[hit] = max(pixels[hit], n)
        large.append(sum(n >= cuts["min_pixels"] for n in own) if counts else 0)
    return pixels, large
