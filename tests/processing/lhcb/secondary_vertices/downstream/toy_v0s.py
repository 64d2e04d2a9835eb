"""Toy decays into two downstream tracks, and the kernel that finds their vertices, compiled alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, PRIMARY_VERTEX
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import MAX_V0S_PER_EVENT
from hltnode.processing.lhcb.secondary_vertices.downstream.field import v0_field_record
from hltnode.processing.lhcb.secondary_vertices.downstream.find_v0s import find_v0s
from hltnode.processing.lhcb.tracks.downstream.collections import MAX_TRACKS_PER_EVENT
from tests.processing.framework.chain_builder import build_kernels
from tests.processing.framework.kernel_runner import Launch, on_cpu, run_algorithms, with_block_size
from tests.processing.framework.session_folders import session_folder
from tests.processing.lhcb.secondary_vertices.downstream.v0_oracle import PION, TRACK_COLUMNS, Z_UT, Track

FIELD = v0_field_record(Magnet.builtin())
NO_PVS: Sequence[Sequence[float]] = ()
ORIGIN = ((0.0, 0.0, 0.0),)


@dataclass(frozen=True)
class Decay:
    """A particle from the origin of this mass, direction and momentum (MeV), that decays at z into two of the given
    masses. In its rest frame the first one, which is positive, flies at `angle` to the line of flight, in a plane at
    `phi`. apart: shift in y of the second track (mm)."""

    z: float = 1200.0
    tx: float = 0.06
    ty: float = 0.04
    p: float = 20000.0
    mass: float = 497.611
    masses: tuple[float, float] = (PION, PION)
    angle: float = 1.3
    phi: float = 0.7
    shift_x: float = 0.0
    apart: float = 0.0
    y_distance: float = 0.0

    @property
    def place(self) -> NDArray[np.float64]:
        """mm."""
        return np.array([self.tx * self.z + self.shift_x, self.ty * self.z, self.z])

    @property
    def momenta(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of both tracks at the vertex, MeV."""
        ma, mb = self.masses
        ea = (self.mass**2 + ma**2 - mb**2) / (2 * self.mass)
        q = np.sqrt(ea**2 - ma**2)
        along = np.array([self.tx, self.ty, 1.0])
        along /= np.linalg.norm(along)
        one = np.cross(along, [0.0, 1.0, 0.0])
        one /= np.linalg.norm(one)
        other = np.cross(along, one)
        gamma = np.hypot(self.p, self.mass) / self.mass
        boost = self.p / self.mass
        transverse = q * np.sin(self.angle) * (np.cos(self.phi) * one + np.sin(self.phi) * other)
        first = transverse + (gamma * q * np.cos(self.angle) + boost * ea) * along
        return first, self.p * along - first


Columns = dict[str, NDArray[Any]]


def columns_of(decays: Sequence[Decay]) -> Columns:
    """The columns of downstream_tracks, two tracks for each decay, f64[2 n]."""
    rows = []
    for decay in decays:
        for number, momentum in enumerate(decay.momenta):
            qop = (1 - 2 * number) / float(np.linalg.norm(momentum))
            place = decay.place + np.array([0.0, number * decay.apart, 0.0])
            rows.append((*_at_ut(place, momentum / momentum[2], qop), qop, decay.y_distance))
    # The kernel and the oracle correct the slope by the distance in y.
    return dict(zip(TRACK_COLUMNS, np.array(rows).reshape(-1, 6).T, strict=True))


def _at_ut(place: NDArray[np.float64], slopes: NDArray[np.float64], qop: float) -> tuple[float, float, float, float]:
    """x, y, tx, ty in the UT of the track with these slopes at a place."""
    dz = np.array([place[2] - Z_UT])
    y, tx = place[1] - slopes[1] * dz[0], slopes[0]
    x = place[0] - tx * dz[0]
    for _ in range(20):
        values = {"x": x, "y": y, "tx": tx, "ty": slopes[1], "qop": qop, "y_distance": 0.0}
        track = Track.of({name: np.array([value]) for name, value in values.items()}, FIELD)
        tx += slopes[0] - float(track.tx_at(dz)[0])
        x += place[0] - float(replace(track, tx=np.array([tx])).x_at(dz)[0])
    return x, y, tx, slopes[1]


@cache
def v0_kernels() -> KernelSources:
    """The kernel, compiled once."""
    folder = session_folder("hltnode-downstream-v0s-")
    include = find_v0s.source.relative_to(PROCESSING).as_posix()
    (folder / "kernels.h").write_text(f'#include "{include}"\n#define HLT_KERNELS(X) X({find_v0s.name})\n')
    kernels = KernelSources("kernels.h", (PROCESSING, folder), str(folder / "kernels.so"))
    build_kernels(kernels)
    return kernels


def blocks_of(block_size: int, *, backward: bool = False) -> Launch:
    """Blocks of this number of emulated threads."""
    return with_block_size(block_size, backward=backward, kernels=v0_kernels())


def run_v0s(
    events: Sequence[Mapping[str, NDArray[Any]]],
    pvs: Sequence[Sequence[Sequence[float]]] | None = None,
    launch: Launch | None = None,
    *,
    algorithm: Algorithm = find_v0s,
) -> tuple[list[Columns], NDArray[np.uint32]]:
    """Vertices of each event by column, from the columns of its tracks and its primary vertices (x, y, z), by default
    one at the origin; and the flags of the events."""
    n = len(events)
    pvs = [ORIGIN] * n if pvs is None else pvs
    vertices = np.zeros((n, MAX_PVS), PRIMARY_VERTEX.dtype)
    for of_event, row in zip(pvs, vertices, strict=True):
        for i, place in enumerate(of_event):
            row["x"][i], row["y"][i], row["z"][i] = place
    given: dict[str, NDArray[Any]] = {
        "v0_field": np.frombuffer(FIELD, np.uint8),
        "downstream_tracks.count": np.array([len(event["x"]) for event in events]),
        "pvs.count": np.array([len(of_event) for of_event in pvs]),
        "pvs.vertex": vertices.ravel(),
    }
    for name in TRACK_COLUMNS:
        column = np.zeros((n, MAX_TRACKS_PER_EVENT), np.float32)
        for event, places in zip(events, column, strict=True):
            places[: len(event[name])] = event[name]
        given[f"downstream_tracks.{name}"] = column.ravel()
    limits = BatchLimits(events=n, meps=1, input_bytes=1 << 16, rows=1)
    columns = run_algorithms((algorithm,), given, n, limits, launch or on_cpu("baseline", v0_kernels()))
    counts = columns["downstream_v0s.count"]
    found = []
    for i in range(n):
        rows = {}
        for name, column in columns.items():
            if name.startswith("downstream_v0s.") and not name.endswith(".count"):
                part = column.reshape(n, MAX_V0S_PER_EVENT, -1)[i, : counts[i]]
                rows[name.partition(".")[2]] = part if part.shape[1] > 1 else part[:, 0]
        found.append(rows)
    return found, columns["events.flags"][:n]
