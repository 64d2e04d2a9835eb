"""Consumers in the model: the slow consumer policies of a node, and messages that are all accounted for."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import SlowConsumerPolicy
from hltnode.daemon.farm_model.consumers import Consumer, OutputTotals
from hltnode.daemon.farm_model.description import ConsumerOutput, ConsumerSection, FarmError
from hltnode.daemon.farm_model.farm import Farm
from hltnode.daemon.farm_model.feasibility import require_possible
from hltnode.daemon.farm_model.results import broken_identities
from hltnode.daemon.farm_model.tables import tables_of
from tests.daemon.farm_model.farms import NODE, described, result_of, run

MS = 1_000_000
FAST = 1e6
"""Messages a second of a consumer that no test makes wait."""


def section(**changes: Any) -> ConsumerSection:
    return ConsumerSection.model_validate({"output": "decisions", "messages_per_second": 1000.0, **changes})


def node(**sections: dict[str, Any]) -> dict[str, Any]:
    return {**NODE, **sections}


def totals(farm: Farm, output: ConsumerOutput) -> OutputTotals:
    return farm.outputs.totals[output]


def test_a_consumer_takes_the_messages_of_all_nodes_one_after_the_other() -> None:
    consumer = Consumer(section(), 2, 1.0, 2)
    consumer.put(0, 0)
    consumer.put(1, 0)
    consumer.put(0, 0)
    assert (consumer.room_ns(0), consumer.room_ns(1)) == (1 * MS, 2 * MS)
    assert not consumer.has_room(0, MS - 1)
    assert consumer.has_room(0, MS)
    assert consumer.has_room(1, 0)


def test_the_link_of_a_consumer_limits_large_messages() -> None:
    consumer = Consumer(section(bytes_per_second=1000.0), 2, 5.0, 1)
    consumer.put(0, 0)
    assert consumer.room_ns(0) == 5 * MS


def test_a_consumer_that_pauses_takes_nothing_meanwhile() -> None:
    consumer = Consumer(section(pause_at_seconds=0.0025, pause_seconds=1.0), 10, 1.0, 1)
    taken = []
    for _ in range(4):
        consumer.put(0, 0)
        taken.append(consumer._free_ns / MS)
    # The third message is half taken when the pause begins.
    assert taken == [1.0, 2.0, 1003.0, 1004.0]
    late = Consumer(section(pause_at_seconds=0.0025, pause_seconds=1.0), 10, 1.0, 1)
    late.put(0, 500 * MS)
    assert late.room_ns(0) == pytest.approx(1003.5 * MS)
    late.put(0, 2000 * MS)
    assert late._free_ns == 2001 * MS


def test_a_fast_consumer_gets_every_decision_and_delays_nothing() -> None:
    quiet = run()
    farm = run(consumers=[{"output": "decisions", "messages_per_second": FAST}])
    of = totals(farm, ConsumerOutput.DECISIONS)
    assert of.offered == of.sent == farm.counts.acknowledged > 100
    assert (of.dropped, of.blocked) == (0, 0)
    assert farm.counts.delivery.max_ns == 0
    assert farm.counts.latency.sum_ns == quiet.counts.latency.sum_ns
    assert broken_identities(farm) == []


def paused(policy: str, queue: int, **changes: Any) -> Farm:
    """A subscriber of decisions that does not read for half a second, from the start on."""
    consumer = {"output": "decisions", "messages_per_second": FAST, "pause_seconds": 0.5}
    return run(consumers=[consumer], node=node(decisions={"policy": policy, "queue": queue, **changes}))


def test_with_wait_a_paused_consumer_holds_back_the_farm_and_loses_nothing() -> None:
    farm = paused("wait", 10)
    of = totals(farm, ConsumerOutput.DECISIONS)
    assert of.sent == farm.counts.acknowledged == farm.counts.produced
    assert farm.counts.latency.max_ns > 400 * MS
    assert farm.counts.waiting.largest > 20, "the slots are full, so nodes grant no credits"
    assert broken_identities(farm) == []


def test_with_drop_new_a_paused_consumer_costs_decisions_and_one_wait() -> None:
    farm = paused("drop_new", 10, drop_after_ms=50)
    of = totals(farm, ConsumerOutput.DECISIONS)
    assert of.dropped > 50
    assert of.sent + of.dropped == farm.counts.acknowledged
    assert 50 * MS <= farm.counts.delivery.max_ns < 100 * MS
    assert broken_identities(farm) == []


def test_with_drop_old_a_paused_consumer_costs_the_oldest_decisions_and_no_time() -> None:
    farm = paused("drop_old", 10)
    of = totals(farm, ConsumerOutput.DECISIONS)
    assert farm.counts.delivery.max_ns == 0
    # Each node has twice the queue: that of the socket, and its own.
    assert of.sent == 2 * 2 * 10
    assert of.dropped == farm.counts.acknowledged - of.sent
    assert broken_identities(farm) == []


def test_events_go_to_one_of_their_consumers_or_to_all_of_them() -> None:
    consumers = [{"output": "events", "messages_per_second": FAST}] * 3
    push = totals(run(consumers=consumers), ConsumerOutput.EVENTS)
    received = [each.received for each in push.consumers]
    assert sum(received) == push.sent
    assert max(received) - min(received) <= 2
    pub = totals(run(consumers=consumers, node=node(events={"kind": "pub"})), ConsumerOutput.EVENTS)
    assert [each.received for each in pub.consumers] == [pub.sent] * 3
    assert pub.sent == push.sent


def test_a_second_collector_takes_over_while_the_first_one_pauses() -> None:
    stopped = {"output": "events", "messages_per_second": FAST, "pause_seconds": 5.0}
    alone = run(consumers=[stopped])
    both = run(consumers=[stopped, {"output": "events", "messages_per_second": FAST}])
    assert alone.counts.latency.max_ns > 4_000 * MS
    assert both.counts.latency.max_ns < 100 * MS


def test_the_monitoring_sample_has_its_fraction_and_never_holds_back_a_node() -> None:
    farm = run(
        consumers=[{"output": "monitoring", "messages_per_second": 1.0}],
        node=node(monitor={"fraction": 0.5, "max_rate": 1e6}),
    )
    of = totals(farm, ConsumerOutput.MONITORING)
    assert of.offered == pytest.approx(farm.counts.acknowledged / 2, abs=2)
    assert of.dropped > 0
    assert farm.counts.delivery.max_ns == 0


@settings(max_examples=20, deadline=None)
@given(
    policy=st.sampled_from(list(SlowConsumerPolicy)),
    rate=st.floats(1100.0, 3000.0),
    queue=st.integers(1, 30),
    pause=st.floats(0.0, 0.3),
    kind=st.sampled_from(("kill", "stop", "drain")),
    seconds=st.floats(0.01, 3.0),
    node_kind=st.sampled_from(("push", "pub")),
)
def test_every_message_is_sent_dropped_or_abandoned_whatever_happens(
    policy: SlowConsumerPolicy, rate: float, queue: int, pause: float, kind: str, seconds: float, node_kind: str
) -> None:
    slow = {"messages_per_second": rate, "pause_at_seconds": 0.05, "pause_seconds": pause}
    farm = run(
        consumers=[{"output": name, **slow} for name in ("decisions", "events", "events", "monitoring")],
        node=node(
            decisions={"policy": policy.value, "queue": queue, "drop_after_ms": 5},
            events={"policy": policy.value, "queue": queue, "kind": node_kind},
        ),
        faults=[{"kind": kind, "at_seconds": 0.1, "seconds": seconds, "nodes": [0, 0]}],
    )
    assert broken_identities(farm) == []
    assert farm.left == 0
    for of in farm.outputs.totals.values():
        assert of.offered == of.sent + of.dropped + of.abandoned


def test_lost_messages_break_an_identity() -> None:
    farm = run(consumers=[{"output": "decisions", "messages_per_second": FAST}])
    totals(farm, ConsumerOutput.DECISIONS).sent -= 1
    broken = broken_identities(farm)
    assert len(broken) == 2
    assert all("decisions" in line for line in broken)


def test_consumers_that_nodes_wait_for_must_be_fast_enough() -> None:
    slow = {"output": "decisions", "messages_per_second": 900.0}
    require_possible(described(consumers=[slow]))
    with pytest.raises(FarmError, match=r"consumers\.0\.messages_per_second: it takes 900 messages/s, but .* 1000"):
        require_possible(described(consumers=[slow], node=node(decisions={"policy": "wait"})))
    collector = {"output": "events", "messages_per_second": 600.0}
    require_possible(described(consumers=[collector, collector]))
    with pytest.raises(FarmError, match="1 consumers of events take 600"):
        require_possible(described(consumers=[collector]))
    with pytest.raises(FarmError, match="it takes 600"):
        require_possible(described(consumers=[collector, collector], node=node(events={"kind": "pub"})))


def test_the_report_has_a_table_of_the_consumers() -> None:
    farm = run(consumers=[{"output": "decisions", "messages_per_second": FAST}])
    result = result_of(farm)
    assert result["consumers"][0]["sent"] == farm.counts.acknowledged
    assert any("as described: decisions (1)" in table.text() for table in tables_of(result))
    assert not any("consumers" in table.title for table in tables_of(result_of(run())))
