"""Toy downstream tracks: seeds and UT hits of tracks that follow the parametrised field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from tests.processing.lhcb.tracks.downstream.downstream_chain import DownstreamEvent
from tests.processing.lhcb.tracks.downstream.downstream_oracle import DX_DY, Z_END, Z_REFERENCE, Z_UT, Field

LAYER_Z = (2327.5, 2372.5, 2597.5, 2642.5)
N_SCIFI = 12


@dataclass(frozen=True)
class Toy:
    """A track: its line at Z_UT and the kink; shifts (mm) of its first UT hit, of the y of its seed and of a stereo
    hit; numbers of its hits that a long track has."""

    x: float = 150.0
    tx: float = 0.05
    y: float = 90.0
    ty: float = 0.035
    kink: float = 0.2
    first_shift: float = 0.0
    seed_y_shift: float = 0.0
    stereo_shift: float = 0.0
    used_ut: int = 0
    used_scifi: int = 0

    @property
    def qop(self) -> float:
        """1/MeV."""
        return Field(LongTrackParameters.builtin()).qop(self.kink, self.tx, self.ty)


def event_of(toys: Sequence[Toy]) -> DownstreamEvent:
    """An event of toy tracks, whose seeds have no hit in common; equal UT hits are one hit."""
    field = Field(LongTrackParameters.builtin())
    seeds, hits = [], []
    for toy in toys:
        ty_behind = toy.ty * (1 + toy.kink * field.value("y_slope", toy.kink, toy.tx, toy.ty)[0])
        # The kernel evaluates the functions at the slope of the seed, which differs little from that of the line.
        z_magnet = field.value("z_magnet", toy.kink, toy.tx, ty_behind)[0]
        y_shift = field.value("y_shift", toy.kink, toy.tx, ty_behind)[0]
        y = toy.y - toy.ty * (Z_UT - Z_REFERENCE - toy.kink * y_shift) + toy.seed_y_shift
        x = toy.x + toy.tx * (z_magnet - Z_UT) + (toy.tx + toy.kink) * (Z_REFERENCE - z_magnet)
        d = Z_END - Z_REFERENCE
        seeds.append((x + (toy.tx + toy.kink) * d, y + ty_behind * d, toy.tx + toy.kink, ty_behind))
        for layer, z in enumerate(LAYER_Z):
            dz = z - Z_UT
            y_hit = toy.y + toy.ty * dz
            x_hit = toy.x + toy.tx * dz + field.curve * toy.kink * dz**2 - DX_DY[layer] * y_hit
            x_hit += (toy.first_shift if layer == 0 else 0.0) + (toy.stereo_shift if layer == 1 else 0.0)
            hits.append((layer, x_hit, z, y_hit))
    unique = list(dict.fromkeys(hits))
    x, y, tx, ty = np.array(seeds, np.float32).T
    n = len(toys)
    toy = toys[0]
    long_hits = np.full((1, N_SCIFI), 0xFFFF, np.uint16)
    long_hits[0, : toy.used_scifi] = np.arange(toy.used_scifi)
    long_ut = np.full((1, 4), 0xFFFF, np.uint16)
    long_ut[0, : toy.used_ut] = np.arange(toy.used_ut)
    return DownstreamEvent(
        seeds={
            **{"x": x, "y": y, "tx": tx, "ty": ty, "curvature": np.zeros(n, np.float32)},
            "quality": np.full(n, 5.0, np.float32),
            "hit_count": np.full(n, N_SCIFI, np.uint8),
            "hits": np.arange(n * N_SCIFI, dtype=np.uint16).reshape(n, N_SCIFI),
        },
        ut={
            "x": np.array([hit[1] for hit in unique], np.float32),
            "z": np.array([hit[2] for hit in unique], np.float32),
            "y_begin": np.array([hit[3] - 25.0 for hit in unique], np.float32),
            "y_end": np.array([hit[3] + 25.0 for hit in unique], np.float32),
        },
        long={"hits": long_hits, "ut_hits": long_ut},
        n_scifi=n * N_SCIFI,
    )
