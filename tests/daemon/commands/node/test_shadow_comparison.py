"""hltnode shadow: the decisions of two nodes, event by event."""

import msgspec
import numpy as np
import pytest

from hltnode.daemon.commands.node.shadow_comparison import DecisionPairs, LineCounts, LineNames, as_json
from hltnode.protocol.transport.decisions import MepDecision


def decision(node: str, mep: int, fired: list[list[int]], n_events: int | None = None) -> MepDecision:
    """Decisions of some events: `fired` has the numbers of the lines that select each."""
    n_lines = 3 if node == "productive" else 4
    words = np.array([sum(1 << line for line in lines) for lines in fired], "<u4")
    return MepDecision(
        node=node,
        run=7,
        mep=mep,
        seq=0,
        first_event=0,
        n_events=len(fired) if n_events is None else n_events,
        n_lines=n_lines,
        tck=0x11 if node == "productive" else 0x22,
        close_reason="complete",
        missing_sources=(),
        accepted=np.packbits(words != 0, bitorder="little").tobytes(),
        lines=words.tobytes(),
        flags=bytes(4 * len(fired)),
    )


def test_lines_are_compared_event_by_event_in_any_order_of_the_decisions() -> None:
    pairs = DecisionPairs()
    pairs.take(decision("shadow", 1, [[0], [1, 3], [], [2]]), is_shadow=True)
    pairs.take(decision("productive", 2, [[0, 1]]), is_shadow=False)
    pairs.take(decision("productive", 1, [[0], [2], [1], [2]]), is_shadow=False)
    pairs.take(decision("shadow", 2, [[0, 1]]), is_shadow=True)
    pairs.take(decision("productive", 3, [[0]]), is_shadow=False)
    found = pairs.end()
    assert (found.meps, found.events, found.differing_events) == (2, 5, 2)
    assert found.accepted == LineCounts(both=4, only_productive=1, only_shadow=0)
    assert found.lines == {
        "line 0": LineCounts(2, 0, 0),
        "line 1": LineCounts(1, 1, 1),
        "line 2": LineCounts(1, 1, 0),
    }
    assert (found.by_number, found.only_productive, found.only_shadow) == (True, (), ("line 3",))
    assert found.unmatched == (1, 0)


OURS, THEIRS = ("Muon", "Track", "Pair"), ("Pair", "New", "Muon", "Newer")


def names(known: dict[int, tuple[str, ...]]) -> LineNames:
    return known.get


def test_lines_of_the_same_name_are_compared_wherever_they_stand() -> None:
    pairs = DecisionPairs(names({0x11: OURS, 0x22: THEIRS}))
    # Line 0 of the productive node is line 2 of the shadow, and line 2 is line 0; the others have no partner.
    pairs.take(decision("productive", 1, [[0, 2], [0, 1], [2]]), is_shadow=False)
    pairs.take(decision("shadow", 1, [[0, 2], [1, 2], [2]]), is_shadow=True)
    found = pairs.end()
    assert found.lines == {"Muon": LineCounts(2, 0, 1), "Pair": LineCounts(1, 1, 0)}
    assert (found.events, found.differing_events) == (3, 1)
    assert as_json(found) == {
        "meps": 1,
        "events": 3,
        "differing_events": 1,
        "accepted": {"both": 3, "only_productive": 0, "only_shadow": 0},
        "lines": {
            "Muon": {"both": 2, "only_productive": 0, "only_shadow": 1},
            "Pair": {"both": 1, "only_productive": 1, "only_shadow": 0},
        },
        "compared_by_number": False,
        "lines_only_productive": ["Track"],
        "lines_only_shadow": ["New", "Newer"],
        "unmatched_meps": {"productive": 0, "shadow": 0},
    }


@pytest.mark.parametrize("known", [{0x11: OURS}, {0x22: THEIRS}, {0x11: OURS[:2], 0x22: THEIRS}])
def test_lines_are_compared_by_number_unless_all_names_of_both_are_known(known: dict[int, tuple[str, ...]]) -> None:
    pairs = DecisionPairs(names(known))
    pairs.take(decision("productive", 1, [[0]]), is_shadow=False)
    pairs.take(decision("shadow", 1, [[0]]), is_shadow=True)
    found = pairs.end()
    assert found.by_number
    assert found.lines["line 0"] == LineCounts(1, 0, 0)


def test_each_trigger_configuration_of_a_node_has_names_of_its_own() -> None:
    pairs = DecisionPairs(names({0x11: OURS, 0x22: THEIRS, 0x33: tuple(reversed(THEIRS))}))
    pairs.take(decision("productive", 1, [[0]]), is_shadow=False)
    pairs.take(decision("shadow", 1, [[2]]), is_shadow=True)
    pairs.take(decision("productive", 2, [[0]]), is_shadow=False)
    pairs.take(msgspec.structs.replace(decision("shadow", 2, [[1]]), tck=0x33), is_shadow=True)
    assert pairs.end().lines["Muon"] == LineCounts(2, 0, 0)


def test_a_difference_in_acceptance_alone_counts_as_one() -> None:
    pairs = DecisionPairs()
    pairs.take(decision("productive", 1, [[], [0]]), is_shadow=False)
    # Line 3 is a line of the shadow only.
    pairs.take(decision("shadow", 1, [[3], [0]]), is_shadow=True)
    assert pairs.end().differing_events == 1


def test_decisions_without_a_partner_are_given_up_and_counted() -> None:
    pairs = DecisionPairs(most=3)
    for mep in range(5):
        pairs.take(decision("productive", mep, [[0]]), is_shadow=False)
    pairs.take(decision("shadow", 1, [[0]]), is_shadow=True)
    pairs.take(decision("shadow", 2, [[0]]), is_shadow=True)
    found = pairs.end()
    assert (found.meps, found.unmatched) == (1, (4, 1))


def test_a_mep_of_other_events_is_an_error() -> None:
    pairs = DecisionPairs()
    pairs.take(decision("productive", 1, [[0]]), is_shadow=False)
    with pytest.raises(ValueError, match="MEP 1: 1 events of productive, 2 of shadow"):
        pairs.take(decision("shadow", 1, [[0], [0]]), is_shadow=True)
