import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry import VeloGeometry
from hltnode.processing.lhcb.offline.validation.readers import velopix
from hltnode.processing.lhcb.offline.validation.readers.velopix import (
    VelopixError,
    clusters_of_hits,
    encode_velopix,
    read_velopix,
)
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.lhcb.lhcb_id import velo_lhcb_id
from hltnode.protocol.lhcb.truth import decode_particles
from hltnode.protocol.raw_data.odin import decode_odin

GEOMETRY = VeloGeometry.builtin()
COLUMNS = [
    "key",
    "pid",
    "p",
    "pt",
    "eta",
    "phi",
    "isLong",
    "isDown",
    "hasVelo",
    "hasUT",
    "hasScifi",
    "fromBeautyDecay",
    "fromCharmDecay",
    "fromStrangeDecay",
    "charge",
    "hits",
]


def made_event() -> dict[str, Any]:
    """Three hits in module 0, two of them on one pixel, and two particles."""
    position = GEOMETRY.local_to_global([0, 0, 3], [100, 100, 767], [20, 20, 255], [0.5, 0.25, 0.0], [0.0, 0.0, 0.0])
    x, y, z = np.round(position, 3).T.tolist()
    particles = [
        [7, 211, 9000.0, 500.0, 3.5, 0.1, 1, 0, 1, 1, 1, 1, 0, 0, 1.0, [0, 2]],
        [8, -11, 900.0, 50.0, 3.5, 0.1, 0, 0, 1, 0, 0, 0, 0, 1, -1.0, [1]],
    ]
    return {
        "x": x,
        "y": y,
        "z": z,
        "module_prefix_sum": [0] + [3] * 52,
        "montecarlo": {"description": COLUMNS, "particles": particles},
    }


def write(path: Path, *events: dict[str, Any]) -> Path:
    path.write_bytes(gzip.compress("\n".join(json.dumps(event) for event in events).encode()))
    return path


def test_hits_become_clusters_and_particles_have_their_ids(tmp_path: Path) -> None:
    (event,) = read_velopix(write(tmp_path / "one.jsonl.gz", made_event()))
    banks = encode_velopix(event, GEOMETRY, run=5)
    assert [bank.type for bank in banks].count(LhcbBankType.VP_RETINA_CLUSTER) == 208
    assert (decode_odin(banks[0]).run, decode_odin(banks[0]).event_id) == (5, 0)
    clusters = decode_retina_clusters(banks)
    assert list(zip(clusters.sensor, clusters.column, clusters.row, strict=True)) == [(0, 100, 20), (3, 767, 255)]
    pion, electron = decode_particles(banks)
    assert (pion.key, pion.is_long, pion.from_b, pion.from_strange) == (7, True, True, False)
    assert (electron.pid, electron.has_velo, electron.from_strange) == (-11, True, True)
    assert electron.velo_ids == pion.velo_ids[:1]
    assert pion.velo_ids[1] == 0x20000000 | 3 << 18 | 767 << 8 | 255


@pytest.mark.physics
@pytest.mark.parametrize(("name", "largest_shift"), [("minbias", 0.017), ("bsphiphi", 0.017), ("upgrade2", 0.06)])
def test_every_hit_of_the_truth_sets_is_on_a_pixel(shared: Path, name: str, largest_shift: float) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    n_events = 0
    for event in islice(read_velopix(shared / "data" / "velo-truth" / f"{name}.jsonl.gz"), 0, None, 10):
        n_events += 1
        clusters, of_hit = clusters_of_hits(event, geometry)
        centre = geometry.local_to_global(
            clusters.sensor, clusters.column, clusters.row, clusters.fraction_x / 4, clusters.fraction_y / 4
        )
        assert np.abs(centre[of_hit] - event.position).max() < largest_shift
        np.testing.assert_array_equal(clusters.sensor[of_hit] // 4, event.module)
        if name != "upgrade2":
            assert len(clusters.sensor) == len(event.position)
    assert n_events >= 2


@pytest.mark.physics
def test_ids_of_the_particles_are_those_of_the_decoded_banks(shared: Path) -> None:
    event = next(read_velopix(shared / "data" / "velo-truth" / "bsphiphi.jsonl.gz"))
    banks = encode_velopix(event, GEOMETRY)
    clusters = decode_retina_clusters(banks)
    assert len(clusters.sensor) == len(event.position)
    chip, column = np.divmod(clusters.column, np.uint32(256))
    decoded = velo_lhcb_id(clusters.sensor, chip, column, clusters.row)
    decoded |= (clusters.fraction_x != 0).astype(np.uint32) << np.uint32(27)
    decoded |= (clusters.fraction_y != 0).astype(np.uint32) << np.uint32(26)
    particles = decode_particles(banks)
    assert len(particles) == len(event.particles)
    assert {hit for p in particles for hit in p.velo_ids} <= set(decoded.tolist())


def test_particles_of_a_set_without_kinematics_are_left_out(tmp_path: Path) -> None:
    event = made_event()
    event["montecarlo"] = {"description": ["hits"], "particles": [[[0, 1, 2]]]}
    (read,) = read_velopix(write(tmp_path / "u2.jsonl.gz", event))
    assert decode_particles(encode_velopix(read, GEOMETRY)) == []


@pytest.mark.parametrize(("column", "value"), [(0, None), (1, "x"), (2, [1.0]), (1, 2**70)])
def test_an_invalid_particle_is_named(tmp_path: Path, column: int, value: object) -> None:
    event = made_event()
    event["montecarlo"]["particles"][0][column] = value
    (read,) = read_velopix(write(tmp_path / "bad.jsonl.gz", event))
    with pytest.raises((VelopixError, TruthError), match=r"event 0: not a particle|MC particles"):
        encode_velopix(read, GEOMETRY)


def test_a_hit_outside_all_sensors_is_named(tmp_path: Path) -> None:
    event = made_event()
    event["x"][1] += 200.0
    (read,) = read_velopix(write(tmp_path / "far.jsonl.gz", event))
    with pytest.raises(VelopixError, match=r"event 0: hit 1 at .* is not on a sensor of module 0"):
        encode_velopix(read, GEOMETRY)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("x", [1.0]),
        ("z", None),
        ("module_prefix_sum", [0, 3]),
        ("module_prefix_sum", [0] + [4] * 52),
        ("module_prefix_sum", [0, 3, 2] + [3] * 50),
        ("montecarlo", {"description": COLUMNS, "particles": [[1]]}),
        ("montecarlo", {"description": ["hits"], "particles": [[[0, 3]]]}),
        ("montecarlo", {"description": ["hits"], "particles": [[["0"]]]}),
        ("montecarlo", []),
        ("module_prefix_sum", [0, 2**70] + [3] * 51),
    ],
)
def test_a_line_that_is_not_an_event_is_named(tmp_path: Path, key: str, value: object) -> None:
    path = write(tmp_path / "bad.jsonl.gz", made_event(), made_event() | {key: value})
    with pytest.raises(VelopixError, match=r"bad.jsonl.gz, line 2"):
        list(read_velopix(path))


def test_files_that_are_not_gzip_or_are_truncated_or_missing_are_named(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl.gz", made_event()).read_bytes()
    (tmp_path / "short.jsonl.gz").write_bytes(good[:-20])
    (tmp_path / "plain.jsonl.gz").write_bytes(b"{}")
    for name in ("short.jsonl.gz", "plain.jsonl.gz", "missing.jsonl.gz"):
        with pytest.raises(VelopixError, match=name):
            list(read_velopix(tmp_path / name))


def test_a_line_longer_than_any_event_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(velopix, "_MAX_LINE", 50)
    path = tmp_path / "long.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 1000))
    with pytest.raises(VelopixError, match="line 1: longer than 50 characters"):
        next(read_velopix(path))
