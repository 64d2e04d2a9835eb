"""The verdict of a soak finds each kind of loss, and accepts a fault only as the reason of losses that it can cause."""

from math import inf
from pathlib import Path

import pytest

from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.soak.absences import RETURN_SECONDS, Absences, FeederRecords
from tests.soak.content import EVENTS_PER_MEP, FEEDER_OF, ODIN_SOURCE, SOURCES, odin_payload, payload
from tests.soak.decision_log import Decision, DecisionLog
from tests.soak.faults import RESTARTS, Kind, Standing
from tests.soak.records import Event
from tests.soak.timeline import Session, Timeline
from tests.soak.verdict import BUILDING_SECONDS, Allowed, Found, Judge, Judgement, Place

RUN, MEPS = 4201, 5
NODES = ("a", "b")
FILE = "a_session1_0000004201_accepted_00001.mdf"
FILE_OF_B = "b_session2_0000004201_accepted_00001.mdf"
ENDPOINTS = {"tcp://127.0.0.1:7001": "a", "tcp://127.0.0.1:7002": "b"}
SOURCE = SOURCES[1]
FEEDER = f"feeder{FEEDER_OF[SOURCE]}"
DECIDED = 100.0


class Scene:
    """A soak of one run without failures; each test changes one thing."""

    def __init__(self) -> None:
        self.found, self.quarantine, self.allowed = Found(), Found(), Allowed()
        self.timeline = Timeline(sessions=[Session("a", "a_session1", 0.0), Session("b", "b_session2", 0.0)])
        self.records = FeederRecords()
        self.decisions = DecisionLog()
        for mep in range(MEPS):
            self.place(mep, frozenset())
            self.decisions.add("a", Decision(DECIDED, RUN, mep, "complete", frozenset()))

    def place(self, mep: int, missing: frozenset[int], file: str = FILE) -> None:
        """Add the events of a MEP to a file."""
        for number in range(mep * EVENTS_PER_MEP, (mep + 1) * EVENTS_PER_MEP):
            self.found.places[Event(RUN, number)].append(Place(file, missing))

    def lack(self, mep: int, *sources: int, decided: float = DECIDED, named: bool = True) -> None:
        """Make a MEP incomplete, also in its decision."""
        missing = frozenset(sources)
        for number in range(mep * EVENTS_PER_MEP, (mep + 1) * EVENTS_PER_MEP):
            self.found.places[Event(RUN, number)] = [Place(FILE, missing)]
        self.decisions.of_node["a"][mep] = Decision(decided, RUN, mep, "timeout", missing if named else frozenset())

    def move_to_b(self, mep: int, *sources: int, revoked: tuple[int, int] | None = None) -> None:
        """Node b has a MEP, too; the copy of node a lacks some sources. `revoked`: reported as revoked from a."""
        self.lack(mep, *sources)
        self.place(mep, frozenset(), FILE_OF_B)
        if revoked is not None:
            report = {"run": RUN, "unconfirmed": {"tcp://127.0.0.1:7001": [revoked]}}
            self.allowed.revoked.read(report, ENDPOINTS)
        self.allowed.revoked.spans[RUN] = DECIDED - 50.0, DECIDED - 1.0

    def strike(self, kind: Kind, target: str, begin: float, end: float = inf) -> None:
        """Add a fault; a process that is started again is ready at once."""
        self.timeline.strike(kind, target, begin).end = end
        if kind in RESTARTS:
            for node in range(len(NODES)):
                self.records.ready[int(target.removeprefix("feeder")), node].append(end + 0.01)

    def judge(self) -> Judgement:
        absences = Absences(self.timeline, self.records, FEEDER_OF, NODES)
        judge = Judge({RUN: MEPS}, self.found, self.quarantine, self.decisions, self.timeline, absences, self.allowed)
        return judge.judge()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_soak_in_which_every_event_is_found_once_and_complete_is_good(scene: Scene) -> None:
    judgement = scene.judge()
    assert judgement.problems == []
    assert judgement.complete == MEPS * EVENTS_PER_MEP


def test_an_event_that_is_in_no_file_is_lost(scene: Scene) -> None:
    del scene.found.places[Event(RUN, 7)]
    judgement = scene.judge()
    assert judgement.lost == {Standing.NONE: 1}
    assert "1 events are lost, 0 of them are in quarantine: (4201, 7)" in judgement.problems


def test_an_event_that_is_only_in_quarantine_is_lost(scene: Scene) -> None:
    scene.quarantine.places[Event(RUN, 7)] = scene.found.places.pop(Event(RUN, 7))
    assert "1 events are lost, 1 of them are in quarantine: (4201, 7)" in scene.judge().problems


def test_a_loss_near_a_fault_is_named_beside_it_and_not_explained_by_it(scene: Scene) -> None:
    scene.strike(Kind.KILL_NODE, "a", DECIDED - 5.0, DECIDED - 4.0)
    del scene.found.places[Event(RUN, 7)]
    judgement = scene.judge()
    assert judgement.lost == {Kind.KILL_NODE: 1}
    assert judgement.problems


def test_an_event_of_a_file_that_was_open_in_a_power_cut_may_be_lost(scene: Scene) -> None:
    del scene.found.places[Event(RUN, 7)]
    scene.allowed.lost[Event(RUN, 7)] = Kind.CUT_POWER
    judgement = scene.judge()
    assert judgement.lost_explained == {Kind.CUT_POWER: 1}
    assert judgement.problems == []


def test_an_event_of_such_a_file_that_only_one_feeder_sent_again_may_be_incomplete(scene: Scene) -> None:
    scene.lack(3, SOURCE)
    for number in range(3 * EVENTS_PER_MEP, 4 * EVENTS_PER_MEP):
        scene.allowed.lost[Event(RUN, number)] = Kind.CUT_POWER
    judgement = scene.judge()
    assert judgement.incomplete_explained == {Kind.CUT_POWER: EVENTS_PER_MEP}
    assert judgement.problems == []


def test_an_event_in_two_files_is_doubled(scene: Scene) -> None:
    scene.found.places[Event(RUN, 7)].append(Place(FILE_OF_B, frozenset()))
    judgement = scene.judge()
    assert judgement.doubled == {Standing.NONE: 1}
    assert any("more than once: (4201, 7)" in problem for problem in judgement.problems)


def test_an_event_twice_in_one_file_is_doubled(scene: Scene) -> None:
    scene.found.places[Event(RUN, 7)] *= 2
    assert scene.judge().doubled.total() == 1


def test_the_copy_of_a_stopped_node_from_which_its_mep_was_revoked_is_explained(scene: Scene) -> None:
    scene.move_to_b(2, SOURCE, revoked=(2, 2))
    scene.strike(Kind.STOP_NODE_LONG, "a", DECIDED - 10.0, DECIDED - 0.5)
    judgement = scene.judge()
    assert judgement.problems == []
    assert judgement.doubled_explained == {Kind.STOP_NODE_LONG: EVENTS_PER_MEP}
    assert judgement.incomplete_explained == {Kind.STOP_NODE_LONG: EVENTS_PER_MEP}


def test_a_complete_copy_of_a_killed_node_that_wrote_it_before_is_explained(scene: Scene) -> None:
    scene.move_to_b(2, revoked=(2, 2))
    scene.strike(Kind.LOSE_NODE, "a", DECIDED - 2.0, DECIDED + 5.0)
    judgement = scene.judge()
    assert judgement.problems == []
    assert judgement.doubled_explained == {Kind.LOSE_NODE: EVENTS_PER_MEP}


@pytest.mark.parametrize("revoked", [None, (0, 1), (3, 4)])
def test_a_second_copy_of_which_no_feeder_said_that_it_may_be_there_is_not_explained(
    scene: Scene, revoked: tuple[int, int] | None
) -> None:
    scene.move_to_b(2, SOURCE, revoked=revoked)
    scene.strike(Kind.STOP_NODE_LONG, "a", DECIDED - 10.0, DECIDED - 0.5)
    judgement = scene.judge()
    assert judgement.doubled.total() == EVENTS_PER_MEP
    assert judgement.incomplete_unexplained.total() == EVENTS_PER_MEP


@pytest.mark.parametrize(
    ("node", "begin", "end"), [("b", 10.0, 0.5), ("a", 70.0, 50.5), ("a", 0.9, 0.5)], ids=["other", "before", "after"]
)
def test_a_revocation_from_a_node_that_worked_during_the_run_explains_nothing(
    scene: Scene, node: str, begin: float, end: float
) -> None:
    scene.move_to_b(2, SOURCE, revoked=(2, 2))
    scene.strike(Kind.STOP_NODE_LONG, node, DECIDED - begin, DECIDED - end)
    judgement = scene.judge()
    assert judgement.doubled.total() == EVENTS_PER_MEP
    assert judgement.incomplete_unexplained.total() == EVENTS_PER_MEP


def test_a_mep_that_was_revoked_from_one_node_may_not_be_incomplete_at_the_other(scene: Scene) -> None:
    scene.move_to_b(2, revoked=(2, 2))
    scene.strike(Kind.STOP_NODE_LONG, "a", DECIDED - 10.0, DECIDED - 0.5)
    for number in range(2 * EVENTS_PER_MEP, 3 * EVENTS_PER_MEP):
        scene.found.places[Event(RUN, number)][1] = Place(FILE_OF_B, frozenset({SOURCE}))
    judgement = scene.judge()
    assert judgement.doubled_explained.total() == EVENTS_PER_MEP
    assert judgement.incomplete_unexplained.total() == EVENTS_PER_MEP


def test_an_incomplete_mep_that_only_the_node_has_from_which_it_was_revoked_is_not_explained(scene: Scene) -> None:
    scene.move_to_b(2, SOURCE, revoked=(2, 2))
    scene.strike(Kind.STOP_NODE_LONG, "a", DECIDED - 10.0, DECIDED - 0.5)
    for number in range(2 * EVENTS_PER_MEP, 3 * EVENTS_PER_MEP):
        scene.found.places[Event(RUN, number)].pop()
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


def test_two_copies_at_nodes_from_which_their_mep_was_revoked_are_not_explained(scene: Scene) -> None:
    scene.move_to_b(2, revoked=(2, 2))
    scene.allowed.revoked.read({"run": RUN, "unconfirmed": {"tcp://127.0.0.1:7002": [(2, 2)]}}, ENDPOINTS)
    for node in NODES:
        scene.strike(Kind.STOP_NODE_LONG, node, DECIDED - 10.0, DECIDED - 0.5)
    assert scene.judge().doubled.total() == EVENTS_PER_MEP


def test_a_third_copy_of_an_event_is_not_explained_by_a_revocation(scene: Scene) -> None:
    scene.move_to_b(2, SOURCE, revoked=(2, 2))
    scene.strike(Kind.STOP_NODE_LONG, "a", DECIDED - 10.0, DECIDED - 0.5)
    event = Event(RUN, 2 * EVENTS_PER_MEP)
    scene.found.places[event].append(Place(FILE.replace("00001", "00002"), frozenset()))
    judgement = scene.judge()
    assert judgement.doubled.total() == 1
    assert judgement.doubled_explained.total() == EVENTS_PER_MEP - 1


def test_an_event_beyond_the_fed_events_is_a_problem(scene: Scene) -> None:
    scene.place(MEPS, frozenset())
    assert any("20 events were never fed" in problem for problem in scene.judge().problems)


def test_an_event_of_a_run_that_was_not_fed_is_a_problem(scene: Scene) -> None:
    scene.found.places[Event(RUN + 1, 0)].append(Place(FILE, frozenset()))
    assert any("1 events were never fed: (4202, 0)" in problem for problem in scene.judge().problems)


def test_an_incomplete_mep_without_a_fault_is_not_explained(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    judgement = scene.judge()
    assert judgement.incomplete_unexplained == {Standing.NONE: EVENTS_PER_MEP}
    assert any("20 incomplete events of 1 MEPs are not explained" in problem for problem in judgement.problems)


@pytest.mark.parametrize("kind", [Kind.STOP_FEEDER, Kind.STOP_FEEDER_LONG, Kind.KILL_FEEDER, Kind.END_KILL_FEEDER])
def test_a_mep_that_was_built_while_the_feeder_of_its_missing_source_was_away_is_explained(
    scene: Scene, kind: Kind
) -> None:
    scene.lack(2, SOURCE)
    scene.strike(kind, FEEDER, DECIDED - 3.0, DECIDED)
    judgement = scene.judge()
    assert judgement.incomplete_explained == {kind: EVENTS_PER_MEP}
    assert judgement.problems == []


@pytest.mark.parametrize(
    "kind",
    [Kind.KILL_NODE, Kind.LOSE_NODE, Kind.STOP_NODE, Kind.STOP_NODE_LONG, Kind.CUT_POWER, Kind.FORGE,
     Kind.HOSTILE_PEERS, Kind.DISK_FULL, Kind.NO_DESCRIPTORS, Kind.DIRECTORY_AWAY, Kind.END_STOP_NODE,
     Kind.END_KILL_NODE],
)  # fmt: skip
def test_no_fault_of_a_node_explains_an_incomplete_mep(scene: Scene, kind: Kind) -> None:
    scene.lack(2, SOURCE)
    scene.strike(kind, "a", DECIDED - 3.0, DECIDED - 0.1)
    judgement = scene.judge()
    assert judgement.incomplete_unexplained == {kind: EVENTS_PER_MEP}
    assert judgement.problems


def test_the_absence_of_one_feeder_does_not_explain_the_missing_source_of_another(scene: Scene) -> None:
    other = next(source for source in SOURCES if FEEDER_OF[source] != FEEDER_OF[SOURCE])
    scene.lack(2, SOURCE, other)
    scene.strike(Kind.STOP_FEEDER, FEEDER, DECIDED - 3.0, DECIDED)
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


def test_a_feeder_that_was_back_before_the_mep_was_begun_explains_nothing(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.STOP_FEEDER, FEEDER, DECIDED - 9.0, DECIDED - BUILDING_SECONDS - 1.1)
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


@pytest.mark.parametrize(("seconds", "explained"), [(5.0, False), (12.0, True)])
def test_a_long_outage_of_the_supervisor_explains_missing_sources_of_the_others(
    scene: Scene, seconds: float, explained: bool
) -> None:
    assert FEEDER != "feeder1"
    scene.lack(2, SOURCE)
    for begin in range(int(seconds)):
        scene.strike(Kind.KILL_SUPERVISOR, "feeder1", DECIDED - seconds + begin, DECIDED - seconds + begin + 0.3)
    assert bool(scene.judge().incomplete_explained) is explained


def test_a_feeder_that_left_after_the_decision_explains_nothing(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.KILL_FEEDER, FEEDER, DECIDED + 0.1, DECIDED + 2.0)
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


def test_a_killed_feeder_is_away_until_it_has_sent_its_first_fragment(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.KILL_FEEDER, FEEDER, DECIDED - 9.0, DECIDED - 8.0)
    scene.records.silences.append((FEEDER_OF[SOURCE], 0, DECIDED - 8.0, DECIDED - 2.0))
    assert scene.judge().incomplete_explained == {Kind.KILL_FEEDER: EVENTS_PER_MEP}


def test_the_start_of_its_process_is_not_taken_for_a_late_return_of_a_feeder(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.KILL_FEEDER, FEEDER, DECIDED - 31.0, DECIDED - 30.0)
    scene.records.silences.append((FEEDER_OF[SOURCE], 0, DECIDED - 30.0, DECIDED - 2.0))
    scene.records.ready[FEEDER_OF[SOURCE], 0] = [DECIDED - 60.0, DECIDED - 5.0]
    assert scene.judge().incomplete_explained == {Kind.KILL_FEEDER: EVENTS_PER_MEP}
    scene.records.ready[FEEDER_OF[SOURCE], 0] = [DECIDED - 60.0, DECIDED - 25.0]
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


def test_a_feeder_whose_process_had_not_come_up_yet_is_away(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.KILL_FEEDER, FEEDER, DECIDED - 31.0, DECIDED - 30.0)
    scene.records.ready[FEEDER_OF[SOURCE], 0] = [DECIDED - 60.0, DECIDED + 20.0]
    assert scene.judge().incomplete_explained == {Kind.KILL_FEEDER: EVENTS_PER_MEP}


def test_a_feeder_that_never_returns_explains_only_the_time_until_it_was_due(
    scene: Scene,
) -> None:
    scene.lack(2, SOURCE)
    end = DECIDED - RETURN_SECONDS - BUILDING_SECONDS - 2.0
    scene.strike(Kind.STOP_FEEDER, FEEDER, end - 1.0, end)
    scene.records.silences.append((FEEDER_OF[SOURCE], 0, end - 1.0, DECIDED + 100.0))
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


def test_a_feeder_that_is_away_from_one_node_explains_nothing_at_the_other(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.KILL_FEEDER, FEEDER, DECIDED - 9.0, DECIDED - 8.0)
    scene.records.silences.append((FEEDER_OF[SOURCE], 1, DECIDED - 8.0, DECIDED - 2.0))
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP


def test_a_late_decision_of_a_stopped_node_is_explained_by_earlier_faults(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.strike(Kind.STOP_FEEDER, FEEDER, DECIDED - 40.0, DECIDED - 32.0)
    scene.strike(Kind.STOP_NODE_LONG, "a", DECIDED - 30.5, DECIDED - 0.5)
    assert scene.judge().incomplete_explained == {Kind.STOP_FEEDER: EVENTS_PER_MEP}


def test_a_fragment_that_was_dropped_on_purpose_explains_its_own_mep_only(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    scene.lack(3, SOURCE)
    scene.records.faults[RUN, 2, SOURCE] = "drop"
    judgement = scene.judge()
    assert judgement.incomplete_explained == {Standing.WIRE: EVENTS_PER_MEP}
    assert judgement.incomplete_unexplained == {Standing.NONE: EVENTS_PER_MEP}


def test_sources_that_are_missing_and_not_named_by_the_decision_are_a_problem(scene: Scene) -> None:
    scene.lack(2, SOURCE, named=False)
    scene.records.faults[RUN, 2, SOURCE] = "drop"
    assert any("its decision names []" in problem for problem in scene.judge().problems)


def test_a_mep_whose_decision_was_lost_with_its_node_is_judged_by_its_neighbours(scene: Scene) -> None:
    scene.lack(4, SOURCE)
    scene.decisions.of_node["a"].pop()
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP
    scene.strike(Kind.STOP_FEEDER, FEEDER, DECIDED - 3.0, DECIDED)
    assert scene.judge().incomplete_explained == {Kind.STOP_FEEDER: EVENTS_PER_MEP}


def test_a_mep_whose_decision_the_sample_left_out_was_decided_between_its_neighbours(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    decisions = scene.decisions.of_node["a"]
    decisions[3:] = [Decision(DECIDED + 20.0, RUN, mep, "complete", frozenset()) for mep in (3, 4)]
    del decisions[2]
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP
    scene.strike(Kind.STOP_FEEDER, FEEDER, DECIDED + 1.0, DECIDED + 3.0)
    assert scene.judge().incomplete_explained == {Kind.STOP_FEEDER: EVENTS_PER_MEP}


def test_a_mep_whose_neighbours_came_later_from_another_node_was_built_when_it_was_sent(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    decisions = scene.decisions.of_node["a"]
    decisions[:] = [Decision(DECIDED + 20.0, RUN, mep, "complete", frozenset()) for mep in (0, 1, 3, 4)]
    scene.strike(Kind.STOP_FEEDER, FEEDER, DECIDED - 1.0, DECIDED + 3.0)
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP
    scene.records.sent[RUN, 2, ODIN_SOURCE].append((1, DECIDED))
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP, "sent to the other node"
    scene.records.sent[RUN, 2, ODIN_SOURCE].append((0, DECIDED))
    assert scene.judge().incomplete_explained == {Kind.STOP_FEEDER: EVENTS_PER_MEP}


def test_a_mep_sent_again_after_its_neighbours_were_decided_was_built_when_it_was_sent(scene: Scene) -> None:
    scene.lack(2, SOURCE)
    decisions = scene.decisions.of_node["a"]
    decisions[:] = [Decision(DECIDED, RUN, mep, "complete", frozenset()) for mep in (0, 1, 3, 4)]
    scene.strike(Kind.KILL_FEEDER, FEEDER, DECIDED + 2.0, DECIDED + 2.1)
    assert scene.judge().incomplete_unexplained.total() == EVENTS_PER_MEP
    scene.records.sent[RUN, 2, ODIN_SOURCE].append((0, DECIDED + 2.5))
    assert scene.judge().incomplete_explained == {Kind.KILL_FEEDER: EVENTS_PER_MEP}


def record(run: int, event: int, *, file_run: int | None = None, left_out: int | None = None) -> bytearray:
    banks = [
        RawBank(BankType.ODIN, 7, source, memoryview(odin_payload(run, event)))
        if source == ODIN_SOURCE
        else RawBank(LhcbBankType.TEST_DET, 1, source, memoryview(payload(run, source, event)))
        for source in SOURCES
        if source != left_out
    ]
    return bytearray(encode_record(encode_banks(banks), run=file_run or run, checksum=False))


def test_the_files_are_read_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(record(RUN, 3) + record(RUN, 4, left_out=SOURCE))
    found = Found()
    found.read(path)
    assert found.problems == []
    assert dict(found.places) == {
        Event(RUN, 3): [Place(FILE, frozenset())],
        Event(RUN, 4): [Place(FILE, frozenset({SOURCE}))],
    }


def test_a_flipped_bit_in_a_bank_is_a_problem(tmp_path: Path) -> None:
    damaged = record(RUN, 3)
    # After the padding, which is not compared.
    damaged[-6] ^= 1
    (tmp_path / FILE).write_bytes(damaged)
    found = Found()
    found.read(tmp_path / FILE)
    assert any("banks of sources" in problem for problem in found.problems)


def test_a_cut_record_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(record(RUN, 3)[:-1])
    found = Found()
    found.read(tmp_path / FILE)
    assert found.problems


def test_an_event_in_a_record_of_another_run_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(record(RUN, 3, file_run=RUN + 1))
    found = Found()
    found.read(tmp_path / FILE)
    assert any("in a record of run 4202" in problem for problem in found.problems)
