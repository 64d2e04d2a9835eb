from dataclasses import replace

import numpy as np
import pytest

from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.lhcb.truth import McParticle, decode_particles, encode_particles
from hltnode.protocol.lhcb.truth_columns import (
    decode_particle_columns,
    encode_particle_columns,
    join_particle_columns,
)
from hltnode.protocol.raw_data.raw_bank import RawBank


def particles(n: int) -> list[McParticle]:
    return [
        McParticle(
            key=key,
            pid=-211,
            p=1500.5,
            pt=300.25 + key,
            eta=2.5,
            phi=-0.5,
            vertex_x=0.125,
            vertex_y=0.25,
            vertex_z=-30.0,
            is_long=key % 2 == 0,
            has_velo=True,
            from_strange=key % 3 == 0,
            mother_pid=310,
            charge=-1.0,
            n_pvs=4,
            velo_ids=tuple(range(0x20000000 + key, 0x20000000 + key + key % 7)),
        )
        for key in range(n)
    ]


def columns_of(wanted: list[McParticle]) -> dict[str, list[float]]:
    places = ("vertex_x", "vertex_y", "vertex_z")
    flags = ("is_long", "has_velo", "from_strange")
    names = ("key", "pid", "p", "pt", "eta", "phi", *places, *flags, "mother_pid", "charge", "n_pvs")
    return {name: [getattr(particle, name) for particle in wanted] for name in names}


@pytest.mark.parametrize("n", [0, 1, 20, 2000])
def test_columns_give_the_same_banks_as_particles_one_by_one(n: int) -> None:
    wanted = particles(n)
    ids = np.array([hit for particle in wanted for hit in particle.velo_ids], dtype=np.uint32)
    counts = np.array([len(particle.velo_ids) for particle in wanted], dtype=np.int64)
    banks = encode_particle_columns(columns_of(wanted), ids, counts)
    expected = encode_particles(wanted)
    assert [(b.version, b.source_id, bytes(b.payload)) for b in banks] == [
        (b.version, b.source_id, bytes(b.payload)) for b in expected
    ]
    assert decode_particles(banks) == wanted


def test_one_value_is_used_for_all_particles_and_a_missing_column_has_its_default() -> None:
    (bank,) = encode_particle_columns({"n_pvs": 3}, np.empty(0, np.uint32), np.zeros(2, np.int64))
    decoded = decode_particles([bank])
    assert [(p.n_pvs, p.mother_key, p.dom_key) for p in decoded] == [(3, -1, -1)] * 2


def test_ids_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(TruthError, match="3 ids announced, 2 given"):
        encode_particle_columns({}, np.zeros(2, np.uint32), np.array([1, 2]))


def test_a_column_that_no_particle_has_is_refused() -> None:
    with pytest.raises(TruthError, match="momentum"):
        encode_particle_columns({"momentum": [1.0]}, np.empty(0, np.uint32), np.array([0]))


def with_ids(n: int) -> list[McParticle]:
    """Particles with ids in all detectors, some without any."""
    return [
        replace(one, ut_ids=tuple(range(one.key % 4)), scifi_ids=tuple(range(100, 100 + 3 * (one.key % 5))))
        for one in particles(n)
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("n", [0, 1, 700])
def test_columns_have_the_values_of_the_particles(n: int, version: int) -> None:
    wanted = with_ids(n)
    columns = decode_particle_columns(reversed(encode_particles(wanted, version)))
    assert len(columns) == n
    for name in ("key", "pid", "pt", "is_long", "from_strange", "mother_key", "charge", "n_pvs"):
        assert columns.values[name].tolist() == [getattr(one, name) for one in wanted]
    for name in ("velo_ids", "ut_ids", "scifi_ids"):
        assert getattr(columns, name).tolist() == [hit for one in wanted for hit in getattr(one, name)]
        assert getattr(columns, f"n_{name}").tolist() == [len(getattr(one, name)) for one in wanted]


def test_columns_of_events_are_joined_in_their_order() -> None:
    events = [with_ids(3), [], with_ids(5)]
    joined = join_particle_columns([decode_particle_columns(encode_particles(event)) for event in events])
    assert joined.values["key"].tolist() == [0, 1, 2, 0, 1, 2, 3, 4]
    assert len(joined.scifi_ids) == joined.n_scifi_ids.sum() == sum(len(p.scifi_ids) for e in events for p in e)


def test_ids_of_all_detectors_can_be_written_as_columns() -> None:
    wanted = with_ids(20)
    ids, n_ids = {}, {}
    for name in ("velo_ids", "ut_ids", "scifi_ids"):
        ids[name] = np.array([hit for one in wanted for hit in getattr(one, name)], dtype=np.uint32)
        n_ids[name] = np.array([len(getattr(one, name)) for one in wanted], dtype=np.int64)
    banks = encode_particle_columns(
        columns_of(wanted),
        ids["velo_ids"],
        n_ids["velo_ids"],
        ids["ut_ids"],
        n_ids["ut_ids"],
        ids["scifi_ids"],
        n_ids["scifi_ids"],
    )
    assert decode_particles(banks) == wanted


def test_an_announced_number_of_ids_beyond_the_bank_is_refused_without_further_reading() -> None:
    (bank,) = encode_particles(particles(1))
    payload = bytearray(bank.payload)
    payload[-12:-8] = b"\xff\xff\xff\x7f"
    with pytest.raises(TruthError, match="1"):
        decode_particle_columns([RawBank(bank.type, bank.version, 0, memoryview(bytes(payload)))])
