"""Which seeds a combiner confirms, when it decides a slice, and what it remembers."""

from __future__ import annotations

import gc
import tracemalloc
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.combiner import seed_joiner
from hltnode.daemon.combiner.seed_joiner import Decision, JoinRules, SeedError, SeedJoiner
from hltnode.daemon.common.vocabulary import CombinedSlice
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.seed_messages import (
    Keep,
    SliceSeeds,
    decode_to_combiner,
    encode_to_combiner,
    row_type,
    rows_of,
)
from hltnode.protocol.value_lists import ListDescription

CORE, BEFORE, BEHIND, RUN = 1000, 50, 100, 7
DESCRIPTION = ListDescription("windows", {"n_hits": "u4"}).to_bytes()
Seed = tuple[int, int, int]
"""Start, end, lines."""


def seeds_of(number: int, *seeds: Seed, run: int = RUN, core: int = CORE) -> SliceSeeds:
    rows = np.zeros(len(seeds), row_type(DESCRIPTION))
    for row, (start, end, lines) in zip(rows, seeds, strict=True):
        row["start_ns"], row["end_ns"], row["lines"] = start, end, lines
        row["sub_slice"] = max(0, (start - number * core) // 100)
        row["columns"] = list(int(start & 0xFFFF).to_bytes(4, "little"))
    return SliceSeeds(run, number, core, BEFORE, BEHIND, DESCRIPTION, rows.tobytes())


def windows_of(decided: list[Decision]) -> dict[int, set[Seed]]:
    found: dict[int, set[Seed]] = {}
    for message, _ in decided:
        rows = rows_of(message.description, message.windows)
        assert [int.from_bytes(bytes(row["columns"]), "little") for row in rows] == (rows["start_ns"] & 0xFFFF).tolist()
        assert rows["sub_slice"].tolist() == sorted(rows["sub_slice"].tolist())
        found[message.slice] = {(int(r["start_ns"]), int(r["end_ns"]), int(r["lines"])) for r in rows}
    return found


def expected(seeds: dict[str, list[Seed]], rules: JoinRules) -> set[Seed]:
    """The confirmed seeds by brute force."""
    found = set()
    for each in {seed for of_node in seeds.values() for seed in of_node}:
        near = sum(
            any(s <= each[1] + rules.distance_ns and e >= each[0] - rules.distance_ns for s, e, _ in of_node)
            for of_node in seeds.values()
        )
        if near >= rules.min_nodes or each[2] & rules.lines:
            found.add(each)
    return found


@pytest.mark.parametrize(
    ("distance", "min_nodes", "lines"), [(0, 2, 0), (30, 2, 4), (250, 3, 0), (2500, 3, 0), (0, 1, 0)]
)
def test_windows_are_those_of_brute_force_in_any_order(distance: int, min_nodes: int, lines: int) -> None:
    rng = np.random.default_rng(distance + min_nodes)
    n_slices, nodes = 30, ("a", "b", "c")
    seeds: dict[str, list[Seed]] = {node: [] for node in nodes}
    reports = []
    for node in nodes:
        for number in range(n_slices):
            starts = number * CORE + rng.integers(0, CORE, rng.integers(0, 4))
            of_slice = [
                (max(0, int(start) - 40), int(start) + int(rng.integers(1, 60)), int(rng.integers(1, 8)))
                for start in starts
            ]
            seeds[node] += of_slice
            reports.append((node, seeds_of(number, *of_slice)))
    order = np.argsort([number * 1.0 + rng.uniform(0, 6) for _ in nodes for number in range(n_slices)])
    rules = JoinRules(nodes=3, min_nodes=min_nodes, distance_ns=distance, lines=lines)
    joiner = SeedJoiner(rules)
    decided = []
    for i in order:
        decided += joiner.report(0, *reports[i])
    early = len(decided)
    decided += joiner.tick(rules.wait_ns)
    # Only the end of the run waits for slices that do not come.
    assert n_slices - early <= 2 + distance // CORE
    found = windows_of(decided)
    assert sorted(found) == list(range(n_slices))
    assert len(decided) == n_slices
    assert all(set(names) == set(nodes) for _, names in decided)
    complete = {message.slice for message, _ in decided if message.complete}
    all_of = expected(seeds, rules)
    by_slice = defaultdict(set)
    for _, message in reports:
        for row in rows_of(message.description, message.seeds):
            seed = (int(row["start_ns"]), int(row["end_ns"]), int(row["lines"]))
            if seed in all_of or message.slice not in complete:
                by_slice[message.slice].add(seed)
    assert found == {number: by_slice[number] for number in range(n_slices)}
    assert joiner.open_slices == 0


def test_seeds_of_neighbouring_slices_confirm_each_other_at_exactly_the_distance() -> None:
    for gap, is_confirmed in ((10, True), (11, False)):
        joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, distance_ns=10))
        decided = []
        for number, of_a, of_b in (
            (0, [(900, 990, 1)], []),
            (1, [], [(990 + gap, 1100, 1)]),
            (2, [], []),
        ):
            decided += joiner.report(0, "a", seeds_of(number, *of_a)) + joiner.report(0, "b", seeds_of(number, *of_b))
        found = windows_of(decided)
        assert found[0] == ({(900, 990, 1)} if is_confirmed else set())
        assert found[1] == ({(990 + gap, 1100, 1)} if is_confirmed else set())


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        # Seeds that were cut 1 ns behind a margin, which just reach a seed of the slice beside.
        ({1: (1101, 1150, 1)}, {0: (990, 1101, 1)}),
        ({0: (900, 949, 1)}, {1: (949, 1010, 1)}),
    ],
)
def test_seeds_at_the_end_of_a_margin_are_confirmed_in_any_order_of_slices(
    of_a: dict[int, Seed], of_b: dict[int, Seed]
) -> None:
    for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
        joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2))
        decided = []
        for number in order:
            for node, seeds in (("a", of_a), ("b", of_b)):
                own = [seeds[number]] if number in seeds else []
                decided += joiner.report(0, node, seeds_of(number, *own))
        found = windows_of(decided)
        assert {n: each for n, each in found.items() if each} == {n: {seed} for n, seed in (of_a | of_b).items()}


def test_a_silent_node_costs_the_waiting_time_and_the_rule_decides() -> None:
    for keeps in (True, False):
        rules = JoinRules(nodes=2, min_nodes=2, wait_ns=1000, keep_incomplete=keeps, lines=2)
        joiner = SeedJoiner(rules)
        assert joiner.report(5, "a", seeds_of(0, (10, 20, 1), (30, 40, 2))) == []
        assert joiner.tick(1004) == []
        (decision,) = joiner.tick(1005)
        assert not decision[0].complete
        assert windows_of([decision])[0] == ({(10, 20, 1), (30, 40, 2)} if keeps else {(30, 40, 2)})
        assert joiner.counts.slices[CombinedSlice.INCOMPLETE] == 1
        # The late node gets the same windows, and its own seeds change nothing.
        late = joiner.report(2000, "b", seeds_of(0, (500, 510, 2)))
        assert late == [(decision[0], ("b",))]
        assert joiner.counts.repeated == 1


def test_a_slice_that_is_sent_again_counts_once() -> None:
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, distance_ns=5))
    seed = (100, 120, 1)
    assert joiner.report(0, "a", seeds_of(0, seed)) == []
    assert joiner.report(0, "a", seeds_of(0, seed)) == []
    assert joiner.counts.repeated == 1
    decided = joiner.report(0, "b", seeds_of(0))
    assert windows_of(decided) == {0: set()}
    assert joiner.report(9, "a", seeds_of(0, seed)) == [(decided[0][0], ("a",))]
    assert sum(joiner.counts.slices.values()) == 1


def test_slices_that_are_cut_in_another_way_are_refused() -> None:
    joiner = SeedJoiner(JoinRules(nodes=2))
    joiner.report(0, "a", seeds_of(0))
    with pytest.raises(SeedError, match="slices of 500 ns"):
        joiner.report(0, "b", seeds_of(0, core=500))
    assert joiner.report(0, "b", seeds_of(0, core=500, run=RUN + 1)) == []


def test_memory_is_bounded_and_a_forgotten_slice_is_decided_again() -> None:
    rules = JoinRules(nodes=2, min_nodes=2, max_bytes=213_000, wait_ns=1000)
    joiner = SeedJoiner(rules)
    many = [(10 * i, 10 * i + 5, 1) for i in range(100)]
    decided = []
    for number in range(200):
        of_slice = [(start + number * CORE, end + number * CORE, lines) for start, end, lines in many]
        decided += joiner.report(number, "a", seeds_of(number, *of_slice))
        assert joiner.nbytes <= rules.max_bytes
    assert joiner.counts.slices[CombinedSlice.NO_ROOM] == len(decided) > 100
    assert joiner.counts.forgotten == len(decided)
    assert [message.slice for message, _ in decided] == list(range(len(decided)))
    # It waits for the other node again, then every seed is kept.
    assert joiner.report(300, "b", seeds_of(0, (10, 20, 1))) == []
    again = windows_of(joiner.tick(300 + rules.wait_ns))
    assert again[0] == {(10, 20, 1)}


def test_the_oldest_slice_that_is_remembered_is_decided_as_soon_as_all_nodes_have_reported() -> None:
    one = SeedJoiner(JoinRules(nodes=2, min_nodes=2))
    one.report(0, "a", seeds_of(0))
    # Room for two slices.
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, max_bytes=3 * one.nbytes - 1))
    for number in (0, 1, 2):
        decided = joiner.report(0, "a", seeds_of(number))
    # Slice 0 had no room: slice 1 is the oldest one.
    assert [message.slice for message, _ in decided] == [0]
    ((message, nodes),) = joiner.report(0, "b", seeds_of(1))
    assert (message.slice, message.complete, nodes) == (1, True, ("a", "b"))


def test_a_slice_far_ahead_of_all_others_does_not_let_them_wait_once_it_is_forgotten() -> None:
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, max_bytes=20_000))
    far = 10**9
    decided = joiner.report(0, "wrong", seeds_of(far))
    for number in range(100):
        for node in ("a", "b"):
            decided += joiner.report(0, node, seeds_of(number))
    assert joiner.counts.forgotten > 50
    assert {message.slice: message.complete for message, _ in decided} == {far: False} | dict.fromkeys(range(100), True)


def test_the_numbers_of_forgotten_slices_take_no_memory() -> None:
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, max_bytes=20_000))
    for number in range(2000, 0, -1):
        joiner.report(0, "wrong", seeds_of(number))
    [run] = joiner._runs.values()
    assert len(run.slices) < 20
    assert len(run.numbers) < 200


@pytest.mark.parametrize("keeps", [True, False])
def test_the_rule_of_incomplete_slices_is_that_of_slices_without_room(keeps: bool) -> None:
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, max_bytes=100, keep_incomplete=keeps, lines=2))
    (decision,) = joiner.report(0, "a", seeds_of(0, (10, 20, 1), (30, 40, 2)))
    assert not decision[0].complete
    assert joiner.counts.slices[CombinedSlice.NO_ROOM] == 1
    assert windows_of([decision])[0] == ({(10, 20, 1), (30, 40, 2)} if keeps else {(30, 40, 2)})


def test_the_longest_margins_of_a_message_are_no_trouble() -> None:
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, keep_incomplete=False))
    margin = (1 << 61) - 2
    rows = np.zeros(1, row_type(b""))
    rows["start_ns"], rows["end_ns"] = -margin - 1, margin + 2
    for node in ("a", "b"):
        assert joiner.report(0, node, SliceSeeds(RUN, 0, 1, margin, margin, b"", rows.tobytes())) == []
    (decision,) = joiner.tick(10**10)
    assert decision[0].windows == 2 * rows.tobytes()


def test_more_windows_than_a_message_holds_become_the_whole_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    size = row_type(DESCRIPTION).itemsize
    monkeypatch.setattr(seed_joiner, "MAX_SEED_BYTES", 3 * size)
    for n, is_whole in ((3, False), (4, True)):
        joiner = SeedJoiner(JoinRules())
        decided = joiner.report(0, "a", seeds_of(2, *((2000 + 10 * i, 2005 + 10 * i, 1 << i) for i in range(n))))
        (found,) = windows_of_whole(decided)
        assert (len(found) == 1) == is_whole
        if is_whole:
            assert found == [(2000, 3000 + BEHIND, 15)]
        assert joiner.counts.whole == is_whole


def windows_of_whole(decided: list[Decision]) -> list[list[Seed]]:
    return [
        [(int(r["start_ns"]), int(r["end_ns"]), int(r["lines"])) for r in rows_of(m.description, m.windows)]
        for m, _ in decided
    ]


def test_external_windows_belong_to_a_run_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_joiner, "MAX_EXTERNAL", 2)
    joiner = SeedJoiner(JoinRules())
    reply, window = joiner.keep(Keep(1, 0, 5, 9), {})
    assert not reply.ok
    assert window is None
    joiner.report(0, "a", seeds_of(0))
    reply, window = joiner.keep(Keep(2, 0, 5, 9), {})
    assert (reply.ok, reply.run, reply.request) == (True, RUN, 2)
    assert window is not None
    assert (window.run, window.start_ns, window.end_ns) == (RUN, 5, 9)
    assert joiner.keep(Keep(3, RUN, 5, 9), {})[0].text == "known already"
    assert joiner.keep(Keep(4, 8, 5, 9), {})[0].ok
    assert not joiner.keep(Keep(5, 9, 5, 9), {})[0].ok
    assert len(joiner.external) == 2


@pytest.mark.parametrize(
    ("start", "end", "ok", "text"),
    [
        (100, 3000, False, "over: the window ends at 3000 ns, and no node holds anything before 3000 ns"),
        (100, 3001, True, "its first part is over: 2 of 2 nodes hold nothing before 5000 ns"),
        (4999, 9000, True, "its first part is over: 1 of 2 nodes hold nothing before 5000 ns"),
        (5000, 9000, True, "kept by all nodes that hold it"),
        (9999, 20_000, True, "kept by all nodes that hold it"),
        (10_000, 20_000, True, "in the future: the nodes are at 10000 ns; kept when it comes"),
    ],
)
def test_an_external_window_is_answered_with_what_is_kept_of_it(start: int, end: int, ok: bool, text: str) -> None:
    joiner = SeedJoiner(JoinRules(nodes=2))
    joiner.report(0, "a", seeds_of(9))
    joiner.report(0, "b", seeds_of(8))
    held_from = {RUN: [3000, 5000], RUN + 1: [0]}
    reply, window = joiner.keep(Keep(1, 0, start, end), held_from)
    assert (reply.ok, window is not None) == (ok, ok)
    assert reply.text.startswith(text)
    assert joiner.counts.external == len(joiner.external) == ok


def test_external_windows_that_overlap_say_so_and_a_run_that_has_not_come_is_waited_for() -> None:
    joiner = SeedJoiner(JoinRules())
    joiner.report(0, "a", seeds_of(9))
    texts = [
        joiner.keep(Keep(1, run, start, end), {})[0].text
        for run, start, end in ((RUN, 0, 10), (RUN, 10, 20), (RUN, 9, 11), (RUN, 20, 30), (8, 0, 10))
    ]
    kept, unknown = "kept by all nodes that hold it", "no node has reported this run yet: kept when it comes"
    assert texts == [kept, kept, f"{kept}; overlaps 2 earlier windows: hits are kept once", kept, unknown]


def test_the_counted_memory_is_that_of_slices_seeds_and_windows() -> None:
    rng = np.random.default_rng(5)
    messages = [
        (f"node{node}", seeds_of(number, *((number * CORE + int(at), number * CORE + 1 + int(at), 1)
                                           for at in rng.integers(0, 900, rng.integers(0, 40)))))
        for number in range(100)
        for node in range(8)
    ]  # fmt: skip
    gc.collect()
    tracemalloc.start()
    try:
        joiner = SeedJoiner(JoinRules(nodes=8))
        begin, _ = tracemalloc.get_traced_memory()
        for node, message in messages:
            # As a message of the socket, its rows have memory of their own.
            own = decode_to_combiner(encode_to_combiner(message))
            assert isinstance(own, SliceSeeds)
            joiner.report(0, node, own)
        del own
        end, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert joiner.counts.slices[CombinedSlice.COMPLETE] == 100
    assert 0.6 * joiner.nbytes < end - begin <= joiner.nbytes


ANY_U64 = st.one_of(st.integers(0, 40), st.integers(0, 1 << 62), st.integers(0, (1 << 64) - 1))


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.tuples(st.integers(0, 3), ANY_U64, st.sampled_from([1, 1000, 1 << 40, 1 << 61]), ANY_U64, ANY_U64),
            st.lists(st.tuples(ANY_U64, ANY_U64), max_size=3),
        ),
        max_size=30,
    )
)
def test_any_slices_and_times_leave_the_memory_bounded_and_each_slice_is_decided(
    reports: list[tuple[str, tuple[int, int, int, int, int], list[tuple[int, int]]]],
) -> None:
    joiner = SeedJoiner(JoinRules(nodes=2, min_nodes=2, distance_ns=10**9, max_bytes=20_000))
    taken = 0
    for node, (run, number, core, before, behind), seeds in reports:
        rows = np.zeros(len(seeds), row_type(b""))
        for row, (start, length) in zip(rows, seeds, strict=True):
            begin = number * core + start % core
            row["start_ns"] = begin % (1 << 62)
            row["end_ns"] = row["start_ns"] + 1 + length % core
        try:
            raw = encode_to_combiner(SliceSeeds(run, number, core, before, behind, b"", rows.tobytes()))
        except MessageError:
            continue
        message = decode_to_combiner(raw)
        assert isinstance(message, SliceSeeds)
        taken += 1
        try:
            joiner.report(taken, node, message)
        except SeedError:
            continue
        assert 0 <= joiner.nbytes <= joiner.rules.max_bytes
    joiner.tick(10**12)
    assert joiner.open_slices == 0


def test_only_the_last_runs_are_remembered() -> None:
    joiner = SeedJoiner(JoinRules(nodes=2))
    for run in range(1, seed_joiner.MAX_RUNS + 2):
        joiner.report(0, "a", seeds_of(0, (1, 2, 1), run=run))
    assert joiner.open_slices == seed_joiner.MAX_RUNS
    assert joiner.counts.forgotten == 1
    joiner.tick(10**10)
    assert sum(joiner.counts.slices.values()) == seed_joiner.MAX_RUNS
