"""The velopix truth sets (JSON lines, gzip): VELO hits with Monte Carlo particles, encoded into genuine raw banks.

Each line is an event: x, y, z of the hits in mm, sorted by module; module_prefix_sum, the first hit of each of the 52
modules; and the particles, each with the indices of its hits. The sets have no collisions, hence no truth of vertices.

Every hit is on a pixel of the VELO geometry (docs/physics/validation.md). Its position becomes a cluster centre in
quarters of a pixel, which moves it by at most 7 um. Hits that fall on the same pixel become one cluster, shared by
their particles, as one pixel can only have one id.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_velo import N_MODULES, SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import (
    COLUMN_SHIFT,
    SENSOR_SHIFT,
    clusters_at_quarters,
    retina_ids,
)
from hltnode.processing.lhcb.offline.validation.checker.clusters import TrueHits
from hltnode.protocol.lhcb.bank_versions import VeloVersion
from hltnode.protocol.lhcb.banks.velo import RetinaClusters, encode_retina_clusters
from hltnode.protocol.lhcb.truth import McParticle, encode_particles
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

# A hit belongs to a sensor whose plane is within this distance (mm); the planes of a module are 1.16 mm apart.
_PLANE_TOLERANCE = 0.1
# Positions are written with three digits after the point (mm).
_EDGE_TOLERANCE = 0.002

# Columns of a particle in the sets of Upgrade I; those of Upgrade II have only hits.
_TRUTH_COLUMNS = (
    "key",
    "pid",
    "p",
    "pt",
    "eta",
    "phi",
    "isLong",
    "hasVelo",
    "fromBeautyDecay",
    "fromStrangeDecay",
)


# Longest line in characters. Those of the public sets have below 0.7 million; gzip packs up to 1,000 times smaller.
_MAX_LINE = 32 << 20


class VelopixError(ValueError):
    """A velopix file, or an event of it, is not valid; the message names file and line or event."""


@dataclass(frozen=True, slots=True, eq=False)
class VelopixEvent:
    """One event: position f64[n, 3] (mm) and module i64[n] of the hits; `particles` maps column names to values and
    "hits" to indices of hits. `particles` is empty if the set has only their hits."""

    number: int
    position: NDArray[np.float64]
    module: NDArray[np.int64]
    particles: list[dict[str, Any]]


def read_velopix(path: Path) -> Iterator[VelopixEvent]:
    """The events of a gzip file of JSON lines. Raises VelopixError."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_MAX_LINE), "")):
                if len(line) == _MAX_LINE:
                    raise VelopixError(f"{path}, line {number + 1}: longer than {_MAX_LINE} characters")
                try:
                    yield _parse_event(number, json.loads(line))
                except (KeyError, TypeError, IndexError, ValueError, OverflowError) as error:
                    raise VelopixError(f"{path}, line {number + 1}: not a velopix event: {error!r}") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise VelopixError(f"{path}: cannot be read: {error}") from error


def _parse_event(number: int, event: dict[str, Any]) -> VelopixEvent:
    position = np.array([event["x"], event["y"], event["z"]], dtype=np.float64).T
    first_of_module = np.array(event["module_prefix_sum"], dtype=np.int64)
    hits_per_module = np.diff(first_of_module)
    if len(hits_per_module) != N_MODULES or first_of_module[0] != 0 or hits_per_module.min() < 0:
        raise ValueError("module_prefix_sum is not 53 rising numbers from 0")
    if first_of_module[-1] != len(position):
        raise ValueError(f"module_prefix_sum ends at {first_of_module[-1]}, expected {len(position)} hits")
    columns = event["montecarlo"]["description"]
    particles = [dict(zip(columns, values, strict=True)) for values in event["montecarlo"]["particles"]]
    for particle in particles:
        if not all(0 <= hit < len(position) for hit in particle["hits"]):
            raise ValueError(f"a particle has hits {particle['hits']} of {len(position)}")
    if not set(_TRUTH_COLUMNS) <= set(columns):
        particles = []
    return VelopixEvent(
        number=number,
        position=position,
        module=np.repeat(np.arange(N_MODULES), hits_per_module),
        particles=particles,
    )


def encode_velopix(event: VelopixEvent, geometry: VeloGeometry, run: int = 1) -> list[RawBank]:
    """ODIN v7, the 208 VPRetinaCluster v3 banks and the banks of the particles (type 32) of an event.

    Raises VelopixError for a hit that is not on a sensor of its module, and for a particle that is not valid.
    """
    clusters, cluster_of_hit = clusters_of_hits(event, geometry)
    try:
        particles = _mc_particles(event, retina_ids(clusters)[cluster_of_hit])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise VelopixError(f"event {event.number}: not a particle: {error!r}") from error
    odin = encode_odin(Odin(run=run, event_id=event.number))
    return [
        odin,
        *encode_retina_clusters(clusters, VeloVersion.QUARTERS),
        *encode_particles(particles),
    ]


def clusters_of_hits(event: VelopixEvent, geometry: VeloGeometry) -> tuple[RetinaClusters, NDArray[np.int64]]:
    """The clusters at the hits' places, and for each hit the number of its cluster."""
    sensors = event.module[:, None] * SENSORS_PER_MODULE + np.arange(SENSORS_PER_MODULE)
    local = geometry.global_to_local(sensors, event.position[:, None, :])
    fits = geometry.is_inside(local[..., 0], local[..., 1], margin=_EDGE_TOLERANCE)
    fits &= np.abs(local[..., 2]) < _PLANE_TOLERANCE
    lost = np.flatnonzero(~fits.any(axis=1))
    if len(lost):
        raise VelopixError(
            f"event {event.number}: hit {lost[0]} at {event.position[lost[0]].tolist()} mm is not on a sensor of "
            f"module {event.module[lost[0]]} ({len(lost)} such hits)"
        )
    chosen = np.arange(len(sensors)), fits.argmax(axis=1)
    col, row, fx, fy = geometry.local_to_pixel(local[chosen][:, 0], local[chosen][:, 1])
    col4 = np.floor(4 * (col + fx) + 0.5).astype(np.int64)
    row4 = np.floor(4 * (row + fy) + 0.5).astype(np.int64)
    sensor = sensors[chosen]
    pixel = sensor << SENSOR_SHIFT | col4 // 4 << COLUMN_SHIFT | row4 // 4
    _, first, cluster_of_hit = np.unique(pixel, return_index=True, return_inverse=True)
    return clusters_at_quarters(sensor[first], col4[first], row4[first]), cluster_of_hit


def true_hits(event: VelopixEvent, geometry: VeloGeometry) -> TrueHits:
    """The places of the hits of an event. Raises VelopixError as encode_velopix."""
    clusters, cluster_of_hit = clusters_of_hits(event, geometry)
    return TrueHits(retina_ids(clusters)[cluster_of_hit], event.position)


def _mc_particles(event: VelopixEvent, id_of_hit: NDArray[np.uint32]) -> list[McParticle]:
    ids = id_of_hit.tolist()
    return [
        McParticle(
            key=int(particle["key"]),
            pid=int(particle["pid"]),
            p=float(particle["p"]),
            pt=float(particle["pt"]),
            eta=float(particle["eta"]),
            phi=float(particle["phi"]),
            vertex_x=0.0,
            vertex_y=0.0,
            vertex_z=0.0,
            is_long=bool(particle["isLong"]),
            is_down=bool(particle["isDown"]),
            has_velo=bool(particle["hasVelo"]),
            has_ut=bool(particle["hasUT"]),
            has_scifi=bool(particle["hasScifi"]),
            from_b=bool(particle["fromBeautyDecay"]),
            from_c=bool(particle["fromCharmDecay"]),
            from_strange=bool(particle["fromStrangeDecay"]),
            charge=float(particle["charge"]),
            # Several hits of a particle on one pixel are one id.
            velo_ids=tuple(dict.fromkeys(ids[hit] for hit in particle["hits"])),
        )
        for particle in event.particles
    ]
