"""The registry of connections, feeders and runs."""

import pytest
from msgspec.structs import replace

from hltnode.daemon.readout.feeder_registry import MAX_KEPT_RUNS, FeederRegistry
from hltnode.daemon.readout.run_feeders import Feeder, HelloRefusedError, RunFeeders
from hltnode.protocol.transport.feeder_messages import Hello
from hltnode.protocol.transport.mep_ranges import MepRanges


def hello(
    name: str = "a", *, run: int = 7, session: str = "s", sources: tuple[int, ...] = (1,), events: int = 10
) -> Hello:
    return Hello(name, session, run, sources, 0, events, 1000, False)


@pytest.fixture
def registry() -> FeederRegistry:
    return FeederRegistry(
        node="n",
        chain="toy",
        run=0,
        min_feeders=2,
        max_feeders=2,
        sources=None,
        max_events_per_mep=100,
    )


def test_a_feeder_of_another_chain_is_refused_and_one_that_names_none_is_taken(registry: FeederRegistry) -> None:
    registry.check(hello())
    registry.check(replace(hello(), chain="toy"))
    with pytest.raises(HelloRefusedError) as error:
        registry.check(replace(hello(), chain="lhcb"))
    assert error.value.reason == "foreign_chain"
    assert str(error.value) == "node n runs chain toy; this feeder sends data of chain lhcb"


def note(registry: FeederRegistry, identity: bytes, run: RunFeeders, message: Hello) -> Feeder:
    return registry.hello(0, identity, run, message, MepRanges())


def test_a_connection_is_the_feeder_of_its_last_hello_until_the_run_is_forgotten(registry: FeederRegistry) -> None:
    run = registry.begin(7)
    feeder = note(registry, b"1", run, hello())
    assert registry.message_came(5, b"1") == (run, feeder)
    assert feeder.last_message_ns == 5
    note(registry, b"2", run, hello())
    assert registry.message_came(0, b"1") is None
    assert registry.owner_of(7, 1) == b"2"
    registry.forget(run)
    assert registry.message_came(0, b"2") is None
    assert registry.identities(7) == []


def test_a_connection_cannot_be_two_feeders(registry: FeederRegistry) -> None:
    run = registry.begin(7)
    note(registry, b"1", run, hello())
    with pytest.raises(HelloRefusedError, match="feeder a of run 7") as error:
        note(registry, b"1", run, hello("b", sources=(2,)))
    assert error.value.reason == "connection_taken"


def test_a_run_that_is_left_is_kept_with_its_feeders_and_has_another_epoch_each_time(registry: FeederRegistry) -> None:
    run = registry.begin(7)
    feeder = note(registry, b"1", run, hello())
    epochs = [run.epoch]
    registry.leave()
    epochs.append(run.epoch)
    assert registry.current is None
    assert registry.find(7) is run
    registry.begin(8)
    registry.leave()
    assert registry.begin(7) is run
    epochs.append(run.epoch)
    assert registry.message_came(0, b"1") == (run, feeder)
    assert len(set(epochs)) == 3


def test_no_run_begins_when_too_many_are_kept_but_one_of_these_can_be_taken_up(registry: FeederRegistry) -> None:
    for run in range(MAX_KEPT_RUNS):
        registry.keep(run)
    with pytest.raises(HelloRefusedError) as error:
        registry.begin(MAX_KEPT_RUNS)
    assert error.value.reason == "too_many_runs"
    assert registry.begin(5).run == 5


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (hello(sources=()), "no_sources"),
        (hello(events=0), "events_per_mep"),
        (hello(events=101), "events_per_mep"),
    ],
)
def test_a_hello_that_makes_no_sense_is_refused(registry: FeederRegistry, message: Hello, reason: str) -> None:
    with pytest.raises(HelloRefusedError) as error:
        registry.check(message)
    assert error.value.reason == reason
