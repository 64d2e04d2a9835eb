"""Banks of the TPC: the bytes on the wire, and what a reader refuses."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.protocol.alice import tpc_banks
from hltnode.protocol.alice.tpc_banks import (
    CLUSTER,
    FIRST_ROWS,
    MAX_CLUSTERS_OF_BANK,
    N_ROWS,
    N_SOURCES,
    NO_PARTICLE,
    TRUE_PARTICLE,
    TRUE_STATE,
    TpcBankType,
    cluster_bank,
    decode_clusters,
    encode_clusters,
    is_tpc_source,
    slice_of_source,
    tpc_source,
    true_index_bank,
    true_list_banks,
    truth_of,
)
from hltnode.protocol.errors import BankError
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_bank
from hltnode.protocol.raw_data.source_id import source_id


def clusters(n: int) -> np.ndarray:
    return np.array([(i % N_ROWS, 32768 + i, 1500 + i, 7) for i in range(n)], CLUSTER)


def particles(n: int) -> np.ndarray:
    return np.array([(211, -1, (0, 0, i), (1, 0, 0), 0, 0) for i in range(n)], TRUE_PARTICLE)


def particle_banks(records: np.ndarray) -> list[RawBank]:
    return true_list_banks(TpcBankType.TRUE_PARTICLES, records)


def test_a_cluster_is_four_numbers_of_two_bytes_on_fixed_scales() -> None:
    assert encode_clusters(np.array([(158, 32769, 1501, 258)], CLUSTER)) == bytes.fromhex("9e00 0180 dd05 0201")
    y, drift = tpc_banks.places_of_clusters(clusters(2))
    np.testing.assert_allclose([y, drift], [[0.0, 0.0015], [0.0, 0.004]], atol=1e-12)
    numbers = tpc_banks.numbers_of_places(np.array([-49.152, 0.0008, 49.1525]), np.array([-6.0, 0.0, 256.144]))
    np.testing.assert_array_equal(numbers, [[0, 32769, 65536], [0, 1500, 65536]])


def test_sources_count_parts_in_chambers_in_slices() -> None:
    assert tpc_source(0) == 0x0800
    assert tpc_source(35, 5, 7) == 0x0800 + N_SOURCES - 1 == 0x0800 + 1727
    assert [slice_of_source(0x0800 + n) for n in (47, 48, 1727)] == [0, 1, 35]
    assert [is_tpc_source(s) for s in (0x07FF, 0x0800, 0x0800 + 1727, 0x0800 + 1728)] == [False, True, True, False]
    assert np.diff(FIRST_ROWS).tolist() == [31, 32, 28, 26, 23, 19]
    for place in ((36, 0, 0), (0, 6, 0), (0, 0, 8), (-1, 0, 0)):
        with pytest.raises(BankError, match="the TPC has no slice"):
            tpc_source(*place)
    with pytest.raises(BankError, match="sends no clusters"):
        cluster_bank(0x0800 + 1728, clusters(1))


@pytest.mark.parametrize("n", [0, 1, MAX_CLUSTERS_OF_BANK])
def test_clusters_are_read_as_they_were_written(n: int) -> None:
    bank = cluster_bank(tpc_source(3, 1), clusters(n))
    assert (bank.type, bank.version, bank.source_id) == (TpcBankType.CLUSTERS, 1, 0x0800 + 152)
    assert len(encode_bank(bank)) == 8 + 8 * n
    np.testing.assert_array_equal(decode_clusters(bank.payload), clusters(n))


def test_parts_of_clusters_wrong_rows_and_long_lists_are_refused() -> None:
    with pytest.raises(BankError, match="a TPC bank of 15 bytes"):
        decode_clusters(bytes(15))
    wrong = clusters(3)
    wrong["row"][2] = N_ROWS
    for read in (lambda: encode_clusters(wrong), lambda: decode_clusters(wrong.tobytes())):
        with pytest.raises(BankError, match="cluster 2 has row 159"):
            read()
    with pytest.raises(BankError, match="8191 clusters of the TPC, at most 8190"):
        encode_clusters(clusters(MAX_CLUSTERS_OF_BANK + 1))


def test_truth_is_read_in_the_order_of_sources() -> None:
    first, second = tpc_source(0), tpc_source(1)
    many = particles(2000)
    banks = [
        cluster_bank(second, clusters(2)),
        *reversed(particle_banks(many)),
        true_index_bank(second, np.array([1999, NO_PARTICLE])),
        true_index_bank(first, np.array([5])),
        cluster_bank(first, clusters(1)),
    ]
    assert len(particle_banks(many)) == 2
    read = truth_of(banks)
    assert read is not None
    np.testing.assert_array_equal(read.of_clusters, [5, 1999, -1])
    np.testing.assert_array_equal(read.particles, many)
    assert not len(read.states)
    states = np.zeros(3, TRUE_STATE)
    with_states = truth_of([*banks, *true_list_banks(TpcBankType.TRUE_STATES, states)])
    assert with_states is not None
    np.testing.assert_array_equal(with_states.states, states)
    assert [bank.source_id for bank in tpc_banks.banks_of_clusters(banks)] == [first, second]
    assert truth_of(banks[:1]) is None
    none = truth_of(particle_banks(particles(0)))
    assert none is not None
    assert not len(none[0])
    assert not len(none[1])


def test_truth_that_does_not_fit_the_clusters_is_refused() -> None:
    source = tpc_source(0)
    banks = [cluster_bank(source, clusters(2)), *particle_banks(particles(3))]
    for truth, error in (
        ([], "2 clusters and the truth of 0"),
        ([true_index_bank(source, np.array([0]))], "2 clusters and the truth of 1"),
        ([true_index_bank(source, np.array([0, 3]))], "a cluster of particle 3, the event has 3"),
        ([true_index_bank(source, np.array([0, 0]))._replace(payload=memoryview(b"123"))], "3 bytes of particles"),
    ):
        with pytest.raises(BankError, match=error):
            truth_of([*banks, *truth])
    with pytest.raises(BankError, match="35 bytes of simulated particles"):
        truth_of([particle_banks(particles(1))[0]._replace(payload=memoryview(bytes(35)))])
    beyond = np.zeros(1, TRUE_STATE)
    beyond["particle"] = 3
    indices = true_index_bank(source, np.array([0, 0]))
    with pytest.raises(BankError, match="a true state of particle 3, the event has 3"):
        truth_of([*banks, indices, *true_list_banks(TpcBankType.TRUE_STATES, beyond)])
    for mother, good in ((-2, False), (-1, True), (2, True), (3, False)):
        of_mother = particles(3)
        of_mother["mother"][1] = mother
        if good:
            assert truth_of(particle_banks(of_mother)) is not None
        else:
            with pytest.raises(BankError, match=f"particle 1 has mother {mother}, the event has 3"):
                truth_of(particle_banks(of_mother))
    # As the chain, readers leave banks of another version out.
    other = cluster_bank(source, clusters(1))._replace(version=2)
    assert tpc_banks.banks_of_clusters([other, banks[0]]) == [banks[0]]
    foreign = cluster_bank(source, clusters(1))._replace(source_id=source_id(2, 0))
    assert tpc_banks.banks_of_clusters([foreign]) == []
