"""Adjacent records: those that fit, their MEPs, and the rest without some MEPs."""

from hypothesis import given
from hypothesis import strategies as st

from tests.daemon.storage.sessions import block_of

records = st.lists(st.tuples(st.integers(0, 6), st.binary(min_size=1, max_size=9)), min_size=1, max_size=12).map(
    lambda drawn: sorted(drawn, key=lambda record: record[0])
)


@given(records, st.data())
def test_rows_and_bytes_are_those_of_the_records(drawn: list[tuple[int, bytes]], data: st.DataObject) -> None:
    block = block_of(7, drawn)
    first = data.draw(st.integers(0, len(drawn) - 1))
    last = data.draw(st.integers(first + 1, len(drawn)))
    chosen = drawn[first:last]
    assert bytes(block.bytes_of(first, last)) == b"".join(record for _, record in chosen)
    assert [bytes(record) for record in block.records()] == [record for _, record in drawn]
    expected = {mep: (0, 0) for mep, _ in chosen}
    for mep, record in chosen:
        expected[mep] = (expected[mep][0] + 1, expected[mep][1] + len(record))
    assert [(row.mep, row.records, row.bytes) for row in block.rows(first, last)] == [
        (mep, *counts) for mep, counts in expected.items()
    ]


@given(records, st.integers(0, 11), st.integers(-1, 100))
def test_records_fit_up_to_the_limit_of_bytes(drawn: list[tuple[int, bytes]], first: int, room: int) -> None:
    first = min(first, len(drawn) - 1)
    sizes = [len(record) for _, record in drawn[first:]]
    fitting = sum(sum(sizes[: n + 1]) <= room for n in range(len(sizes)))
    assert block_of(7, drawn).fitting(first, room) == fitting


@given(records, st.sets(st.integers(0, 6)))
def test_the_records_of_revoked_meps_are_skipped(drawn: list[tuple[int, bytes]], revoked: set[int]) -> None:
    left = list(block_of(7, drawn).without(revoked))
    found = [
        (mep, bytes(record)) for block in left for mep, record in zip(block.meps.tolist(), block.records(), strict=True)
    ]
    assert found == [(mep, record) for mep, record in drawn if mep not in revoked]
