"""Masked channels of VELO and SciFi give no hits: in every form of the kernels, and all other hits stay."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.scifi.decode_clusters import decode_clusters
from hltnode.processing.lhcb.velo.tracking.sort_by_phi import sort_by_phi
from hltnode.processing.selection.configuration.conditions import check_values, with_conditions
from hltnode.processing.selection.errors import TriggerConfigError
from tests.processing.chains.reference import Reference, counts_of_columns, run_reference
from tests.processing.framework.kernel_runner import on_cpu, with_block_size
from tests.processing.lhcb.full_events import full_events

SEQUENCE = "forward"
VELO = ("x", "y", "z", "id", "phi")
SCIFI = ("x", "z", "id", "info")
COLUMNS = (
    *(f"velo_hits.{name}" for name in (*VELO, "module_pair_offset", "phi_bin_offset")),
    *(f"scifi_hits.{name}" for name in (*SCIFI, "zone_offset")),
    *("velo_clusters.count", "velo_clusters.offset", "scifi_hits.count", "scifi_hits.offset"),
)
ASICS = tuple(range(0, 624, 5))
SIPMS = tuple(range(2048, 8192, 7))
CHANNELS = tuple(range(262144, 1048576, 11))
NAMES = ("masked_velo_asics", "masked_scifi_sipms", "masked_scifi_channels")


@cache
def events(encoding: VeloEncoding) -> EncodedMep:
    chain = CHAIN.with_sequence(SEQUENCE)
    return encode_mep(chain, [list(banks) for banks in full_events(2, 5, encoding, nu=3.0)])


def run(
    encoding: VeloEncoding = "retina", masks: Mapping[str, tuple[int, ...]] = {}
) -> tuple[Reference, dict[str, NDArray[Any]]]:
    """The sequence up to the hits, and its columns of hits."""
    constants = CHAIN.with_sequence(SEQUENCE).load_geometry(None)
    constants = with_conditions(constants, tuple(sorted(masks.items())), CHAIN.conditions)
    reference = run_reference(CHAIN, events(encoding), constants, SEQUENCE, COLUMNS, counts_of_columns)
    dtypes = {column.name: column.dtype for column in reference.sequence.columns}
    return reference, {name: np.frombuffer(reference.made[name], dtypes[name]) for name in COLUMNS}


def of_events(found: Mapping[str, NDArray[Any]], collection: str, sizes: str, names: tuple[str, ...]) -> list[Any]:
    """The columns of each event, rows of a structured array."""
    pairs = zip(found[f"{sizes}.offset"], found[f"{sizes}.count"], strict=False)
    return [
        np.rec.fromarrays(
            [found[f"{collection}.{name}"][first : first + n] for name in names],
            dtype=[(name, found[f"{collection}.{name}"].dtype) for name in names],
        )
        for first, n in pairs
    ]


def masked_velo(ids: NDArray[Any]) -> NDArray[np.bool_]:
    return np.isin(3 * (ids >> 18 & 0xFF) + (ids >> 16 & 3), ASICS)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_each_mask_drops_its_hits_and_leaves_all_others(encoding: VeloEncoding) -> None:
    _, before = run(encoding)
    _, after = run(encoding, {"masked_velo_asics": ASICS})
    velo, left = (of_events(found, "velo_hits", "velo_clusters", VELO) for found in (before, after))
    for given, kept in zip(velo, left, strict=True):
        masked = masked_velo(given.id)
        assert 50 < np.count_nonzero(masked) < 0.5 * len(given)
        assert np.array_equal(kept, given[~masked])
    given_scifi = of_events(before, "scifi_hits", "scifi_hits", SCIFI)
    for name, values in (("masked_scifi_sipms", SIPMS), ("masked_scifi_channels", CHANNELS)):
        _, after = run(encoding, {name: values})
        zones = after["scifi_hits.zone_offset"].reshape(-1, 32), before["scifi_hits.zone_offset"].reshape(-1, 32)
        pairs = zip(given_scifi, of_events(after, "scifi_hits", "scifi_hits", SCIFI), strict=True)
        for event, (given, kept) in enumerate(pairs):
            channel = given.id & 0xFFFFFFF
            masked = np.isin(channel >> 7 if name == "masked_scifi_sipms" else channel, values)
            assert np.count_nonzero(masked) > 20
            assert np.array_equal(kept, given[~masked])
            assert np.array_equal(zones[0][event], np.concatenate([[0], np.cumsum(~masked)])[zones[1][event]])
        assert after["velo_hits.id"].tobytes() == before["velo_hits.id"].tobytes()
    if encoding == "retina":
        # A channel beside the masked ones is not dropped: the mask names it exactly.
        one = int(given_scifi[0].id[0] & 0xFFFFFFF)
        _, after = run(encoding, {"masked_scifi_channels": (one,)})
        kept = of_events(after, "scifi_hits", "scifi_hits", SCIFI)[0]
        assert np.array_equal(kept, given_scifi[0][given_scifi[0].id & 0xFFFFFFF != one])


@pytest.mark.parametrize("block_size", [32, 256])
def test_the_common_kernels_drop_the_same_hits(block_size: int) -> None:
    reference, _ = run(masks=dict(zip(NAMES, (ASICS, SIPMS, CHANNELS), strict=True)))
    assert reference.differences(on_cpu(common=True)) == []
    launch, plain = with_block_size(block_size, backward=block_size == 32), on_cpu()

    def some(algorithm: Any, *arguments: Any) -> None:
        (launch if algorithm.name in (sort_by_phi.name, decode_clusters.name) else plain)(algorithm, *arguments)

    assert reference.differences(some) == []


def test_masks_of_channels_that_cannot_exist_are_refused() -> None:
    for name, wrong in zip(NAMES, ((-1,), (2047,), (262143,)), strict=True):
        with pytest.raises(TriggerConfigError, match=f"conditions.{name}: {wrong[0]}"):
            check_values(((name, wrong),), CHAIN.conditions)
    for name, wrong in zip(NAMES, ((624,), (8192,), (1048576,)), strict=True):
        with pytest.raises(TriggerConfigError, match=f"conditions.{name}: {wrong[0]}"):
            check_values(((name, wrong),), CHAIN.conditions)
        check_values(((name, (wrong[0] - 1,)),), CHAIN.conditions)
