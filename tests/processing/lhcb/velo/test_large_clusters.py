"""Sizes of VELO clusters and large clusters of tracks, against pixels and the oracle; each cut decides alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.codegen import parameter_columns
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.framework.readout import AUTO
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import label_clusters
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.velo.collections import MAX_HITS_PER_TRACK, N_RETINA_KEYS, RetinaPattern
from hltnode.processing.lhcb.velo.decoding.retina_sizes import retina_size_table
from hltnode.processing.lhcb.velo.tracking.large_clusters import large_clusters
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.chains.reference import run_reference
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    host_memory,
    on_cpu,
    run_algorithms,
    with_block_size,
)
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.velo.decoding_oracle import lit_pixels, masked_clusters
from tests.processing.lhcb.velo.large_cluster_oracle import CUTS, OracleTrack, sizes_of
from tests.processing.lhcb.velo.large_cluster_oracle import large_clusters as expected_of
from tests.processing.lhcb.velo.test_cpu_forms import bank_of, dense_maps, isolated_words, random_bank
from tests.processing.lhcb.velo.velo_chain import real_events, shuffled
from tests.processing.lhcb.whole_chain import reference_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

GEOMETRY = VeloGeometry.builtin()
TARGETS = KernelLibrary(CHAIN.kernels).targets
ALL = {"min_pixels": 4, "min_hits": 1, "max_slope": 0.0136}
"""Cuts that count every track of few hits."""
SEQUENCE = CHAIN.with_sequence("velo").sequence
RAW = [
    column.name
    for column in SEQUENCE.columns
    if column in parameter_columns(large_clusters) and column.name.split(".")[0] not in ("velo_hits", "velo_tracks")
]
"""Columns that the kernel reads and that this test does not make itself."""

Sized = list[tuple[list[int], list[int]]]
"""Pixels of each hit and large clusters of each track, by event."""
Events = Sequence[Sequence[RawBank]]


class Banks:
    """Events with the columns of their raw banks."""

    def __init__(self, events: Events | EncodedMep, encoding: str = AUTO) -> None:
        mep = (
            events
            if isinstance(events, EncodedMep)
            else encode_mep(CHAIN, [list(e) for e in events], encoding=encoding)
        )
        names = [name for name in RAW if not name.startswith("input.")]
        reference = run_reference(CHAIN, mep, geometry_constants(GEOMETRY), "velo", names)
        dtypes = {column.name: column.dtype for column in SEQUENCE.columns}
        self.given = reference.given | {
            name: np.frombuffer(content, dtypes[name]) for name, content in reference.made.items()
        }
        self.limits, self.n_events = reference.limits, reference.n_events

    def run(
        self,
        ids: Sequence[NDArray[np.uint32]],
        tracks: Sequence[Sequence[OracleTrack]],
        cuts: Mapping[str, float],
        launch: Launch | None = None,
        allocate: Allocate = host_memory,
    ) -> Sized:
        """What the kernel finds for events with hits of these ids on these tracks."""
        # The bound of the banks counts each word with pixels.
        bounds = np.maximum(self.given["velo_clusters.bound"][: len(ids)], [len(of) for of in ids]).astype(np.uint32)
        offset = np.concatenate([[0], np.cumsum(bounds + 8)]).astype(np.uint32)
        n = int(offset[-1])
        made: dict[str, NDArray[Any]] = {
            "velo_hits.id": np.zeros(n, np.uint32),
            "velo_tracks.hits": np.zeros((n // 2, MAX_HITS_PER_TRACK), np.uint16),
            **{f"velo_tracks.{name}": np.zeros(n // 2, np.uint8) for name in ("hit_count", "backward")},
            **{f"velo_beamline.{name}": np.zeros(n // 2, np.float32) for name in ("tx", "ty")},
        }
        for first, own, of_event in zip(offset.tolist(), ids, tracks, strict=False):
            made["velo_hits.id"][first : first + len(own)] = own
            assert len(of_event) <= len(own) // 2
            for i, track in enumerate(of_event, first // 2):
                made["velo_tracks.hits"][i, : len(track.hits)] = track.hits
                made["velo_tracks.hit_count"][i] = len(track.hits)
                made["velo_tracks.backward"][i] = track.backward
                made["velo_beamline.tx"][i], made["velo_beamline.ty"][i] = track.tx, track.ty
        given = {
            **self.given,
            **made,
            "velo_clusters.offset": offset,
            "velo_clusters.bound": bounds,
            "velo_clusters.count": np.array([len(of) for of in ids], np.uint32),
            "velo_tracks.count": np.array([len(of) for of in tracks], np.uint32),
            "retina_sizes": retina_size_table(),
        }
        limits = replace(self.limits, input_bytes=max(self.limits.input_bytes, 4 * n))
        result = run_algorithms([with_cuts(cuts)], given, self.n_events, limits, launch, allocate=allocate, fill=0xA5)
        return [
            (
                result["velo_hits.pixels"][first : first + len(own)].tolist(),
                result["velo_tracks.large_clusters"][first // 2 :][: len(of_event)].tolist(),
            )
            for first, own, of_event in zip(offset.tolist(), ids, tracks, strict=False)
        ]


def with_cuts(cuts: Mapping[str, float]) -> Algorithm:
    return large_clusters.with_constants(dict(cuts))


def straight(n_hits: int, per_track: int = 13) -> list[OracleTrack]:
    """Tracks along the beam that have all hits, each one once."""
    return [
        OracleTrack(tuple(range(first, min(first + per_track, n_hits))), 0.001, -0.002, backward=False)
        for first in range(0, n_hits, per_track)
    ]


def ids_for(banks: Sequence[RawBank], rng: np.random.Generator, most: int = 3000) -> NDArray[np.uint32]:
    """Ids of clusters of the banks, and others: of pixels nearby, without orientation, of sensors that do not exist."""
    own = np.array(sorted(sizes_of(banks)), np.uint32)
    own = rng.permutation(own)[:most]
    near = own + rng.choice(np.array([1, 256, 1 << 18], np.uint32), len(own))
    wild = rng.integers(0, 1 << 32, 20, dtype=np.uint32)
    return np.concatenate([own, near[: len(own) // 4], own[: len(own) // 4] & np.uint32(0x33FFFFFF), wild])


def assert_as_oracle(
    events: Events | EncodedMep,
    of_events: Events,
    *,
    launches: Sequence[Launch | None] = (None,),
    encoding: str = AUTO,
    seed: int = 1,
    most: int = 3000,
) -> list[int]:
    """Compare the kernel with the oracle for at most `most` hits of each event; returns the sizes above 0."""
    rng = np.random.default_rng(seed)
    banks = Banks(events, encoding)
    kept = [
        [b for b in event if encoding == AUTO or (b.type == LhcbBankType.VP) == (encoding == "superpixel")]
        for event in of_events
    ]
    sizes = [sizes_of(event) for event in kept]
    ids = [ids_for(event, rng, most) for event in kept]
    tracks = [straight(len(own)) for own in ids]
    expected = [expected_of(*event, ALL) for event in zip(sizes, ids, tracks, strict=True)]
    for launch in launches:
        assert banks.run(ids, tracks, ALL, launch) == expected
    return [n for pixels, _ in expected for n in pixels if n]


def every_target() -> list[Launch | None]:
    return [on_cpu(target) for target in TARGETS]


def test_the_oracle_has_the_constants_of_the_algorithm() -> None:
    assert {constant.name: constant.value for constant in large_clusters.constants} == CUTS


def test_each_pattern_of_a_retina_word_has_its_own_key() -> None:
    table = retina_size_table().reshape(len(RetinaPattern), N_RETINA_KEYS)
    assert [int((sizes > 0).sum()) for sizes in table] == [174, 245, 245]
    assert [int(sizes.max()) for sizes in table] == [8, 9, 9]
    assert (table[1:, 32 << 4 :] == 0).all()


def test_retina_words_of_real_events_hold_the_sizes_of_clusters_of_pixels(shared: Path) -> None:
    """Each word whose centre is that of a cluster of pixels. Isolated super-pixels: all. Others: all of the sensors 0
    and 3 of a module whose pattern is whole (bit 29); on the sensors 1 and 2 this simulation wrote other numbers."""
    table = retina_size_table().reshape(len(RetinaPattern), N_RETINA_KEYS)
    right: Counter[tuple[str, bool]] = Counter()
    for banks in real_events(shared, "retina"):
        sensor, column, row = (values.astype(np.int64) for values in decode_superpixels(banks).pixels())
        channels = np.unique(sensor << 18 | column << 8 | row)
        labels = label_clusters(channels)
        n = np.bincount(labels)
        x4, y4 = (
            np.floor(4 * np.bincount(labels, of) / n + 0.5).astype(int) for of in (channels >> 8 & 1023, channels & 255)
        )
        of_cluster = np.zeros(len(n), int)
        of_cluster[labels] = channels >> 18
        true = dict(zip(zip(of_cluster.tolist(), x4.tolist(), y4.tolist(), strict=True), n.tolist(), strict=True))
        it = decode_retina_clusters(banks)
        for one in zip(
            *(v.tolist() for v in (it.sensor, it.column, it.row, it.fraction_x, it.fraction_y, it.flags)), strict=True
        ):
            sensor_, c, r, x, y, flags = one
            size = true.get((sensor_, 4 * c + x, 4 * r + y))
            assert flags & 1 == sensor_ & 1
            if size is None:
                continue
            isolated, whole = flags >> 8 & 1, flags >> 7 & 1
            outer = sensor_ % 4 in (0, 3)
            kind = 0 if isolated else 1 if outer else 2
            number = flags >> 1 & (63 if isolated else 31)
            which = "isolated" if isolated else "outer" if outer and whole else "inner" if whole else "cut"
            right[which, bool(table[kind, number << 4 | x << 2 | y] == size)] += 1
    assert right["isolated", True] == 8297
    assert right["isolated", False] == right["outer", False] == 0
    assert right["outer", True] == 1381
    assert (right["inner", True], right["inner", False]) == (756, 609)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_sizes_of_real_events_are_those_of_the_oracle(shared: Path, encoding: VeloEncoding) -> None:
    events = real_events(shared, encoding)
    for in_order in (events, [shuffled(banks, 1) for banks in events]):
        sizes = assert_as_oracle(in_order, events, launches=every_target(), encoding=encoding)
        assert sum(n >= 4 for n in sizes) > 300


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_sensors_with_few_and_with_many_hits_give_the_same_sizes(encoding: VeloEncoding) -> None:
    """A sensor with more than eight hits is read into cells; each hit of the others reads all words."""
    (event,) = (list(it) for it in simulate_events(1, seed=17, geometry=GEOMETRY, nu=9.0, velo_banks=encoding))
    banks = Banks([event])
    sizes = sizes_of(event)
    of_sensor: dict[int, list[int]] = {}
    for lhcb_id in sorted(sizes):
        of_sensor.setdefault(lhcb_id >> 18 & 0xFF, []).append(lhcb_id)
    for n in (8, 9):
        ids = np.array([it for own in of_sensor.values() if len(own) >= 9 for it in own[:n]], np.uint32)
        assert len(ids) > 50 * n
        tracks = straight(len(ids))
        for launch in (None, with_block_size(64)):
            assert banks.run([ids], [tracks], ALL, launch) == [expected_of(sizes, ids, tracks, ALL)]


@pytest.mark.parametrize(("n", "size"), [(64, 1), (65, 0)])
def test_hits_beside_too_many_words_of_one_place_have_no_size(n: int, size: int) -> None:
    """Copies of a super-pixel of one pixel, as in a damaged bank, and nine others elsewhere on the sensor."""
    copies = np.full(n, 1 | 10 << 8 | 50 << 14, np.uint32)
    others = 1 | np.arange(0, 54, 6, dtype=np.uint32) << np.uint32(8) | np.uint32(90 << 14)
    words = np.concatenate([others[:4], copies, others[4:]]) | np.uint32(1 << 31)
    banks = Banks([[bank_of(LhcbBankType.VP, 2, 7, words)]])
    places = np.concatenate([copies[:1], others])
    ids = np.uint32(2 << 28 | 7 << 18) | (places >> 14) * 2 << np.uint32(8) | (places >> 8 & 63) * 4
    for launch in (*every_target(), with_block_size(64)):
        ((pixels, _),) = banks.run([ids.astype(np.uint32)], [straight(10)], ALL, launch)
        assert pixels == [size] + [1] * 9


def test_few_hits_of_a_random_map_have_the_sizes_of_the_oracle() -> None:
    event = dense_maps(0.2, np.random.default_rng(8))
    assert_as_oracle([event], [event], launches=every_target(), most=40)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_sizes_of_simulated_events_are_those_of_the_oracle(encoding: VeloEncoding) -> None:
    events = [
        list(banks)
        for nu in (1.0, 8.0, 20.0)
        for banks in simulate_events(2, seed=11, geometry=GEOMETRY, nu=nu, velo_banks=encoding)
    ]
    assert_as_oracle(events, events, launches=every_target())


@pytest.mark.parametrize("density", [0.01, 0.05, 0.3, 0.7])
def test_random_maps_of_pixels_sparse_and_dense(density: float) -> None:
    maps = [dense_maps(density, np.random.default_rng(seed)) for seed in range(2)]
    sizes = assert_as_oracle(maps, maps, launches=every_target())
    assert max(sizes) > (2 if density < 0.05 else 5 if density < 0.3 else 20)


def test_isolated_super_pixels_and_pairs_of_sensors() -> None:
    rng = np.random.default_rng(6)
    words = {sensor: isolated_words(rng) for sensor in (0, 103, 206, 207)}
    single = [bank_of(LhcbBankType.VP, 2, sensor, of) for sensor, of in words.items()]
    pair = np.concatenate([words[206], words[207] | np.uint32(1 << 23)])
    pairs = [bank_of(LhcbBankType.VP, 4, 103, rng.permutation(pair))]
    sizes = assert_as_oracle([single, single], [single, single])
    assert max(sizes) == 8
    assert_as_oracle([pairs], [pairs])


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", [LhcbBankType.VP, LhcbBankType.VP_RETINA_CLUSTER])
def test_random_words_do_no_harm(kind: LhcbBankType, version: int) -> None:
    """Columns that do not exist, words of one position, numbers of no pattern: all ways to run give the same."""
    rng = np.random.default_rng(version)
    numbers = range(208 // (2 if version == 4 else 1))
    events = [[random_bank(kind, version, i, int(rng.integers(0, most)), rng) for i in numbers] for most in (2, 40)]
    valid = [[in_range(bank, rng) for bank in event] for event in events]
    sizes = assert_as_oracle(valid, valid)
    assert (len(sizes) > 100) == (version != 2 or kind == LhcbBankType.VP)
    banks = Banks(events)
    ids = [rng.integers(2 << 28, 3 << 28, 500, dtype=np.uint32) for _ in events]
    tracks = [straight(500) for _ in events]
    found = [banks.run(ids, tracks, ALL, launch) for launch in (*every_target(), with_block_size(96))]
    assert all(one == found[0] for one in found)


def in_range(bank: RawBank, rng: np.random.Generator) -> RawBank:
    """The bank with columns that exist, which the oracle's decoder demands."""
    words = np.frombuffer(bank.payload, "<u4")[0 if bank.version == 4 else 1 :].copy()
    shift, bits, most = {LhcbBankType.VP: (14, 0x1FF, 384)}.get(
        LhcbBankType(bank.type), (14 if bank.version == 2 else 12, 0x3FF, 768)
    )
    column = rng.integers(0, most, len(words), dtype=np.uint32)
    words = words & np.uint32(~(bits << shift) & 0xFFFFFFFF) | column << np.uint32(shift)
    return bank_of(LhcbBankType(bank.type), bank.version, bank.source_id, words)


@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
@pytest.mark.parametrize("backward", [False, True])
def test_threads_do_not_change_sizes(block_size: int, backward: bool) -> None:
    maps = [dense_maps(density, np.random.default_rng(3)) for density in (0.03, 0.2)]
    assert_as_oracle(maps, maps, launches=[with_block_size(block_size, backward=backward)])


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_of_a_cpu_do_not_change_sizes(threads: int) -> None:
    maps = [dense_maps(0.05, np.random.default_rng(seed)) for seed in range(6)]
    assert_as_oracle(maps, maps, launches=[on_cpu("baseline", threads=threads)])


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_ptx_finds_the_sizes_of_the_cpu(encoding: VeloEncoding) -> None:
    events = [list(e) for e in simulate_events(2, seed=5, geometry=GEOMETRY, nu=3.0, velo_banks=encoding)]
    banks = Banks(events)
    rng = np.random.default_rng(2)
    ids = [ids_for(event, rng, 200) for event in events]
    tracks = [[*straight(len(own)), OracleTrack((0, 1, 2), 0.0, 0.0, backward=False)] for own in ids]
    expected = banks.run(ids, tracks, ALL)
    for block_size in (32, 100):
        machine = machine_of(module_of("90"), backward=block_size == 100)
        launcher = PtxLauncher(machine, block_size)
        assert banks.run(ids, tracks, ALL, launcher, machine.allocate) == expected
        assert launcher.conflicts == []


def event_of_four() -> tuple[Banks, NDArray[np.uint32]]:
    """Twelve clusters of four pixels on different sensors, with their ids, and one of three pixels, the last one."""
    words = [np.array([0x33 | 10 << 8 | 50 << 14], np.uint32)] * 12 + [np.array([0x13 | 10 << 8 | 50 << 14], np.uint32)]
    event = [bank_of(LhcbBankType.VP, 2, 8 * i, of) for i, of in enumerate(words)]
    sizes = sizes_of(event)
    assert sorted(sizes.values()) == [3] + [4] * 12
    return Banks([event]), np.array(sorted(sizes), np.uint32)


def counted(tracks: Sequence[OracleTrack], **cuts: float) -> list[int]:
    banks, ids = event_of_four()
    ((_, large),) = banks.run([ids], [tracks], CUTS | cuts)
    return large


def test_each_cut_decides_alone() -> None:
    five = OracleTrack((0, 1, 2, 3, 4), 0.0, 0.0, backward=False)
    assert counted([five]) == [5]
    assert counted([replace(five, hits=(0, 1, 2, 3))]) == [0]
    assert counted([replace(five, hits=(0, 1, 2, 3))], min_hits=4) == [4]
    assert counted([five], min_hits=6) == [0]
    assert counted([replace(five, backward=True)]) == [0]
    assert counted([replace(five, hits=(0, 1, 2, 3, 12))]) == [4]
    assert counted([replace(five, hits=(0, 1, 2, 3, 12))], min_pixels=3) == [5]
    assert counted([five], min_pixels=5) == [0]
    assert counted([replace(five, hits=tuple(range(12)))]) == [12]


def test_the_cut_on_the_slope_has_both_axes_and_both_signs() -> None:
    at = OracleTrack((0, 1, 2, 3, 4), 0.0, 0.0, backward=False)
    slopes = [(0.0135, 0.0), (0.0137, 0.0), (0.0, -0.0135), (0.0, -0.0137), (0.0097, 0.0097), (-0.0095, 0.0095)]
    found = [counted([replace(at, tx=tx, ty=ty)]) for tx, ty in slopes]
    assert found == [[5], [0], [5], [0], [0], [5]]
    edge = float(np.float32(0.0136))
    assert counted([replace(at, tx=edge)]) == [5]
    assert counted([replace(at, tx=float(np.nextafter(np.float32(edge), np.float32(1))))]) == [0]
    assert counted([replace(at, tx=0.5)], max_slope=1.0) == [5]


def test_hits_of_tracks_that_are_not_counted_have_no_size() -> None:
    banks, ids = event_of_four()
    near = OracleTrack((0, 2, 4, 6, 8), 0.0, 0.0, backward=False)
    far = OracleTrack((1, 2, 3, 5, 7), 0.3, 0.0, backward=False)
    shares = OracleTrack((8, 9, 10, 11, 12), 0.0, 0.001, backward=False)
    ((pixels, large),) = banks.run([ids], [[far, near, shares]], CUTS)
    assert pixels == [4, 0, 4, 0, 4, 0, 4, 0, 4, 4, 4, 4, 3]
    assert large == [0, 5, 4]


def test_an_event_without_tracks_and_one_without_banks() -> None:
    banks, ids = event_of_four()
    assert banks.run([ids], [[]], CUTS) == [([0] * 13, [])]
    empty = Banks([[bank_of(LhcbBankType.VP, 2, 150, np.array([1], np.uint32))]])
    ((pixels, large),) = empty.run([ids], [straight(13)], CUTS)
    assert (set(pixels), large) == ({0}, [0])


def test_a_sensor_in_two_banks() -> None:
    """Both banks are read, and words of one position are merged as the clustering merges them."""
    first = np.array([0x11 | 5 << 8 | 7 << 14, 0x22 | 5 << 8 | 7 << 14], np.uint32)
    event = [
        bank_of(LhcbBankType.VP, 2, 9, first),
        bank_of(LhcbBankType.VP, 2, 150, np.array([0x44 | 5 << 8 | 7 << 14], np.uint32)),
    ]
    mep = encode_mep(CHAIN, [event])
    (one, begin, size), other = mep.fragments
    both = replace(mep, fragments=((one & ~0x7FF | other[0] & 0x7FF, begin, size), other))
    merged = [bank_of(LhcbBankType.VP, 2, 9, np.array([0x77 | 5 << 8 | 7 << 14], np.uint32))]
    (lhcb_id,) = sizes_of(merged)
    ids = np.full(2, lhcb_id, np.uint32)
    assert Banks(both).run([ids], [straight(2)], ALL) == [([6, 6], [2])]


def words_of_pixels(lit: Iterable[tuple[int, int]]) -> NDArray[np.uint32]:
    """Super-pixels of pixels (column, row)."""
    words: dict[tuple[int, int], int] = {}
    for c, r in lit:
        words[c // 2, r // 4] = words.get((c // 2, r // 4), 0) | 1 << 4 * (c % 2) + r % 4
    return np.array([p | r << 8 | c << 14 for (c, r), p in words.items()], np.uint32)


def block_of_pixels(columns: range, rows: range) -> set[tuple[int, int]]:
    return {(column, row) for column in columns for row in rows}


SOUTH = block_of_pixels(range(20, 23), range(36, 40)) | block_of_pixels(range(20, 21), range(31, 36))
"""A cluster with its centre in row 9 of super-pixels, and a pixel in row 7."""
NORTH = block_of_pixels(range(20, 24), range(20, 24)) | block_of_pixels(range(23, 24), range(24, 32)) | {(22, 32)}
"""A cluster with its centre in row 5 of super-pixels, and a pixel in row 8."""


@pytest.mark.parametrize(("cluster", "column", "row"), [(SOUTH, 20, 36), (NORTH, 22, 23)], ids=["south", "north"])
def test_a_cluster_that_ends_in_another_cell_has_all_its_pixels(
    cluster: set[tuple[int, int]], column: int, row: int
) -> None:
    """Cells have eight rows of super-pixels."""
    others = 1 | np.arange(0, 54, 6, dtype=np.uint32) << np.uint32(8) | np.uint32(90 << 14 | 1 << 31)
    event = [bank_of(LhcbBankType.VP, 2, 7, np.concatenate([words_of_pixels(cluster), others]))]
    sizes = sizes_of(event)
    assert sizes[2 << 28 | 7 << 18 | column << 8 | row] == len(cluster)
    ids = np.array(sorted(sizes), np.uint32)
    assert len(ids) == 10  # more than eight: the words of the sensor are put into cells
    for launch in (*every_target(), with_block_size(64)):
        ((pixels, _),) = Banks([event]).run([ids], [straight(10)], ALL, launch)
        assert pixels == [sizes[int(it)] for it in ids]


def test_the_largest_of_two_clusters_with_one_id_counts() -> None:
    """An arc around a pixel: no particle makes it."""
    arc = {
        (4, 12),
        (4, 13),
        (4, 14),
        (5, 11),
        (6, 10),
        (5, 15),
        (6, 16),
        *((7, r) for r in (*range(8, 12), *range(15, 20))),
    }
    bank = bank_of(LhcbBankType.VP, 2, 3, words_of_pixels({*arc, (6, 13)}))
    _, pixels = lit_pixels([bank])
    clusters = sorted(len(cluster) for cluster in masked_clusters(pixels[3]))
    assert clusters == [1, 10, 16]  # one more is cut by its window
    assert sizes_of([bank])[2 << 28 | 3 << 18 | 6 << 8 | 13] == 16
    assert_as_oracle([[bank]], [[bank]])


def test_the_largest_cluster_counts_though_it_comes_first() -> None:
    """Two words of one place, the larger one isolated: a damaged bank."""
    place = 5 << 8 | 7 << 14
    bank = bank_of(LhcbBankType.VP, 2, 3, np.array([1 << 31 | 0x33 | place, 0x01 | place], np.uint32))
    ids = np.full(2, 2 << 28 | 3 << 18 | 14 << 8 | 20, np.uint32)
    assert Banks([[bank]]).run([ids], [straight(2)], ALL) == [([4, 4], [2])]


def test_the_whole_sequence_counts_as_the_oracle_in_simulated_events() -> None:
    assert_whole_sequence_as_oracle(full_events(4, 3, "superpixel", nu=7.6), None)


def test_the_whole_sequence_counts_as_the_oracle_in_real_events(shared: Path) -> None:
    events = [[bank for bank in banks if bank.type != LhcbBankType.VP] for banks in real_events(shared, "retina")[1:5]]
    assert_whole_sequence_as_oracle(events, shared / "data" / "lhcb-geometry")


def assert_whole_sequence_as_oracle(events: Events, geometry: Path | None) -> None:
    reference = reference_of(encode_mep(CHAIN, [list(event) for event in events]), geometry, "hlt1_2026")
    dtypes = {column.name: column.dtype for column in reference.sequence.columns}
    made = {name: np.frombuffer(content, dtypes[name]) for name, content in reference.made.items()}
    hits = made["velo_tracks.hits"].reshape(-1, MAX_HITS_PER_TRACK)
    n_counted = 0
    for i, event in enumerate(events):
        first, n = (int(made[f"velo_clusters.{name}"][i]) for name in ("offset", "count"))
        tracks = [
            OracleTrack(
                tuple(hits[t, : made["velo_tracks.hit_count"][t]].tolist()),
                float(made["velo_beamline.tx"][t]),
                float(made["velo_beamline.ty"][t]),
                bool(made["velo_tracks.backward"][t]),
            )
            for t in range(first // 2, first // 2 + int(made["velo_tracks.count"][i]))
        ]
        pixels, large = expected_of(sizes_of(event), made["velo_hits.id"][first : first + n], tracks, CUTS)
        assert made["velo_hits.pixels"][first : first + n].tolist() == pixels
        assert made["velo_tracks.large_clusters"][first // 2 :][: len(tracks)].tolist() == large
        n_counted += sum(n > 0 for n in pixels)
    assert n_counted > 30
