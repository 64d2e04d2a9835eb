"""Extension of VELO tracks downstream agrees with its oracle.

Block sizes, PTX and damaged batches: tests/processing/chains and tests/ptx/test_kernels.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.velo.tracking.extend_downstream import extend_downstream
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.lhcb.banks.velo import encode_retina_clusters
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.velo.search_by_triplet_oracle import N_PAIRS, F, Search
from tests.processing.lhcb.velo.test_follow_tracks import CUTS, SEQUENCE, straight_line
from tests.processing.lhcb.velo.test_tracking import assert_tracks_are_sound, random_clusters
from tests.processing.lhcb.velo.velo_chain import VeloChain, VeloEvent, limits_of

GEOMETRY = VeloGeometry.builtin()
LIBRARY = KernelLibrary(CHAIN.kernels)
VALUES = {constant.name: constant.value for constant in extend_downstream.constants}


class Extension(Search):
    """The extension in slow and simple code."""

    def extended(self, tracks: list[list[int]], ids: NDArray[np.uint32], limit: float, skipped: int) -> list[list[int]]:
        """The tracks with all hits that they take."""
        self.used = {hit for track in tracks for hit in track}
        still_open = list(range(len(tracks)))
        while still_open:
            found: list[tuple[int, int, int]] = []
            for i in still_open:
                first, second = tracks[i][:2]
                own = int(ids[first]) >> 21 & 31
                for pair in range(own + 1, min(own + 2 + skipped, N_PAIRS)):
                    dz = F(self.module_z[2 * pair] - self.module_z[2 * own])
                    rank, hit = self._closest(second, first, dz, pair, limit, True)
                    if hit >= 0:
                        found.append((rank & 0xFFFF0000 | i, i, hit))
                        break
            winner = {hit: i for _, i, hit in sorted(found, reverse=True)}
            still_open = [i for _, i, hit in found if winner[hit] == i]
            for hit, i in winner.items():
                tracks[i] = [hit, *tracks[i]]
                self.used.add(hit)
        return tracks


def configured(**constants: float) -> TriggerConfig:
    """The configuration without the limit on clusters, with these constants of the extension."""
    tables: dict[str, dict[str, float]] = {
        "velo_cluster_limit": {"max_clusters": 2**32 - 1},
        "velo_extend_downstream": constants,
    }
    lines = [f"[sequence.{name}]\n" + "\n".join(f"{k} = {v}" for k, v in of.items()) for name, of in tables.items()]
    return TriggerConfig.from_toml("\n".join(lines), CHAIN.menu, SEQUENCE)


def before_and_after(
    events: Sequence[Sequence[RawBank]], **constants: float
) -> tuple[list[VeloEvent], list[VeloEvent]]:
    """The events with their tracks before and after the extension, which is equal for every instruction set and agrees
    with the oracle."""
    mep = encode_mep(CHAIN, [list(banks) for banks in events])
    limits = limits_of(mep)
    limits = replace(limits, input_bytes=2 * limits.input_bytes)
    before = VeloChain(GEOMETRY, limits, None, configured(max_scatter=0.0), sequence=SEQUENCE, extends=True).run(mep)
    after = VeloChain(GEOMETRY, limits, None, configured(**constants), sequence=SEQUENCE, extends=True).run(mep)
    for target in LIBRARY.targets:
        chain = VeloChain(GEOMETRY, limits, target, configured(**constants), sequence=SEQUENCE, extends=True)
        assert all(one.same_as(other) for one, other in zip(chain.run(mep), after, strict=True)), target
    values = VALUES | constants
    for event, extended in zip(before, after, strict=True):
        oracle = Extension(
            *(event.x, event.y, event.z, event.phi),
            event.module_pair_offset.tolist(),
            GEOMETRY.module_z,
            replace(CUTS, max_phi_tolerance=16383.0),
        )
        tracks = [track.tolist() for track in event.tracks]
        expected = oracle.extended(tracks, event.ids, float(values["max_scatter"]), int(values["max_skipped_pairs"]))
        assert [track.tolist() for track in extended.tracks] == expected
        assert_tracks_are_sound(extended)
    return before, after


def test_the_extension_follows_the_search() -> None:
    names = [algorithm.name for algorithm in CHAIN.sequences[SEQUENCE].algorithms]
    assert names.index("velo_extend_downstream") == names.index("velo_consolidate_tracks") + 1
    assert "velo_extend_downstream" not in [it.name for it in CHAIN.sequences["velo_halves"].algorithms]


def test_tracks_of_simulated_events_are_those_of_the_oracle() -> None:
    before, after = before_and_after(list(simulate_events(6, seed=3, geometry=GEOMETRY, nu=7.0)))
    longer = [
        len(new) > len(old) and new[len(new) - len(old) :].tolist() == old.tolist()
        for event, extended in zip(before, after, strict=True)
        for old, new in zip(event.tracks, extended.tracks, strict=True)
    ]
    assert sum(longer) > 3


def test_of_several_tracks_that_pass_a_hit_the_closest_takes_it_and_the_others_end() -> None:
    """Hits up to 10 mm away: more than a hundred tracks lose a hit to another one, and most have a second hit near."""
    before_and_after(list(simulate_events(2, seed=3, geometry=GEOMETRY, nu=7.0)), max_scatter=100.0)


@pytest.mark.parametrize(("n", "modules"), [(40, (0, 52)), (500, (0, 52)), (400, (20, 30))])
def test_tracks_among_random_hits_are_those_of_the_oracle(n: int, modules: tuple[int, int]) -> None:
    """Windows are wide near the beam."""
    banks = [encode_retina_clusters(random_clusters(n, seed, modules=modules), 3) for seed in range(4)]
    for max_scatter in (0.15, 4.0, 100.0):
        before_and_after(banks, max_scatter=max_scatter)


@pytest.mark.parametrize(("last", "skipped", "n_hits"), [(44, 2, 4), (46, 2, 4), (46, 1, 3), (48, 2, 3), (44, 0, 3)])
def test_pairs_without_a_hit_are_skipped_downstream(last: int, skipped: int, n_hits: int) -> None:
    """A search for three neighbouring pairs cannot begin with the last hit of this track."""
    before, after = before_and_after([straight_line((last, 40, 38, 36))], max_skipped_pairs=skipped)
    assert [len(event.tracks[0]) for event in (*before, *after)] == [3, n_hits]


def test_several_hits_are_taken_one_after_the_other() -> None:
    before, after = before_and_after([straight_line((48, 44, 40, 38, 36))])
    assert [len(event.tracks[0]) for event in (*before, *after)] == [3, 5]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10])
def test_any_number_of_hits(n: int) -> None:
    before_and_after([encode_retina_clusters(random_clusters(n, seed=n), 3)])
