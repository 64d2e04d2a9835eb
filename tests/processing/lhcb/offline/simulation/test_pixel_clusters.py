from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import (
    clusters_at_quarters,
    label_clusters,
    retina_clusters,
    retina_ids,
    superpixel_ids,
)
from hltnode.protocol.lhcb.banks.velo import decode_retina_clusters, decode_superpixels, encode_retina_clusters
from hltnode.protocol.lhcb.truth import decode_particles
from hltnode.protocol.raw_data.mdf import iter_records


def channel(sensor: int, col: int, row: int) -> int:
    return sensor << 18 | col << 8 | row


def channels(*places: tuple[int, int, int]) -> np.ndarray:
    return np.array(sorted(channel(*place) for place in places), dtype=np.int64)


def partition_by_search(fired: list[int]) -> set[frozenset[int]]:
    """8-connected components by plain depth-first search."""
    left, parts = set(fired), set()
    while left:
        stack, part = [left.pop()], set()
        while stack:
            pixel = stack.pop()
            part.add(pixel)
            sensor, col, row = pixel >> 18, pixel >> 8 & 0x3FF, pixel & 255
            for c in (col - 1, col, col + 1):
                for r in (row - 1, row, row + 1):
                    near = channel(sensor, c, r)
                    if 0 <= c < 768 and 0 <= r < 256 and near in left:
                        left.remove(near)
                        stack.append(near)
        parts.add(frozenset(part))
    return parts


@pytest.mark.parametrize("density", [0.05, 0.3, 0.5, 0.8])
def test_clusters_are_the_eight_connected_components(density: float) -> None:
    rng = np.random.default_rng(3)
    # At corners of sensors and borders of chips wrong neighbours would be most likely.
    fired = [
        channel(sensor, col + 254 * (col > 5), (row + 250) % 256)
        for sensor in (0, 1, 207)
        for col in (*range(12), *range(506, 514))
        for row in range(12)
        if rng.random() < density
    ]
    pixels = np.array(sorted(fired), dtype=np.int64)
    labels = label_clusters(pixels)
    parts = {frozenset(pixels[labels == label].tolist()) for label in range(labels.max() + 1)}
    assert parts == partition_by_search(fired)


def test_no_pixels_make_no_clusters() -> None:
    none = np.empty(0, dtype=np.int64)
    assert len(label_clusters(none)) == 0
    assert len(retina_clusters(none, none).sensor) == 0
    assert len(superpixel_ids(none, none)) == 0


def test_the_centre_is_rounded_to_a_quarter_of_a_pixel() -> None:
    pixels = channels((2, 10, 5), (2, 11, 5), (2, 11, 6))
    clusters = retina_clusters(pixels, label_clusters(pixels))
    assert (clusters.sensor[0], clusters.column[0], clusters.row[0]) == (2, 10, 5)
    assert (clusters.fraction_x[0], clusters.fraction_y[0]) == (3, 1)  # 2/3 and 1/3


def test_ids_of_retina_clusters_have_the_position_of_the_centre_between_pixels() -> None:
    clusters = clusters_at_quarters(np.array([1, 1, 1]), np.array([40, 42, 40]), np.array([80, 80, 81]))
    base = 0x20000000 | channel(1, 10, 20)
    assert retina_ids(clusters).tolist() == [base, base | 1 << 27, base | 1 << 26]


def test_ids_of_superpixel_clusters_have_the_integer_part_of_the_centre() -> None:
    pixels = channels((2, 10, 5), (2, 11, 5), (2, 11, 6))
    assert superpixel_ids(pixels, label_clusters(pixels)).tolist() == [0x20000000 | channel(2, 10, 5)]


def test_no_cluster_gets_the_word_zero_that_decoders_drop() -> None:
    banks = encode_retina_clusters(clusters_at_quarters(np.array([4]), np.array([0]), np.array([0])), 3)
    assert 0 not in np.frombuffer(banks[4].payload, "<u4")


@pytest.mark.physics
def test_clustering_the_real_pixels_gives_the_clusters_of_the_real_readout(shared: Path) -> None:
    path = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    same_place: Counter[bool] = Counter()
    n_clusters = []
    for record in iter_records(path.read_bytes()):
        banks = list(record.banks())
        sensor, col, row = (values.astype(np.int64) for values in decode_superpixels(banks).pixels())
        pixels = np.unique(sensor << 18 | col << 8 | row)
        labels = label_clusters(pixels)
        n_clusters.append(int(labels.max()) + 1)
        ours = set(retina_ids(retina_clusters(pixels, labels)).tolist())
        readout = set(retina_ids(decode_retina_clusters(banks)).tolist())
        same_place.update({True: len(ours & readout), False: len(readout - ours)})
        assert {hit for p in decode_particles(banks) for hit in p.velo_ids} == readout
    assert n_clusters[1:] == [933, 1547, 1550, 2268, 718, 876]  # docs/physics/velo-clustering.md
    # The readout divides large clusters; a plain clustering does not.
    assert same_place[True] / same_place.total() > 0.93
