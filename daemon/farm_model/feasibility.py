"""What a farm can carry at most, and the numbers that a farm lacks that cannot work: without a run of the model."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hltnode.daemon.common.vocabulary import EventSocketKind, SlowConsumerPolicy
from hltnode.daemon.farm_model.description import ConsumerOutput, FarmDescription, FarmError
from hltnode.daemon.farm_model.node_numbers import NodeNumbers, policy_of
from hltnode.daemon.farm_model.service_times import service_times
from hltnode.daemon.node.sizing import batch_limits
from hltnode.protocol.raw_data.mfp import data_offset
from hltnode.protocol.transport.frame_header import HEADER_SIZE

_GIGABIT = 1e9 / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Rates of events in events per second that one node carries at most. batch_events: events of a full slot."""

    batch_events: int
    compute: float
    link: float
    disk: float

    @property
    def of_node(self) -> float:
        """The lowest rate."""
        return min(self.compute, self.link, self.disk)

    @property
    def limit(self) -> str:
        """What limits a node."""
        return min(("compute", self.compute), ("link", self.link), ("disk", self.disk), key=lambda each: each[1])[0]


def mean_rate_factor(description: FarmDescription) -> float:
    """Mean rate with bursts, as a multiple of the rate without."""
    burst = description.burst
    if burst is None:
        return 1.0
    part = min(1.0, burst.seconds / burst.every_seconds)
    return 1.0 + part * (burst.factor - 1.0)


def frame_bytes(description: FarmDescription) -> int:
    """The frame of a fragment: transport header, and the MFP with its events."""
    data = -(-description.mep_bytes // max(1, description.readout.sources))
    return HEADER_SIZE + data_offset(description.readout.events_per_mep) + data


def capacity(description: FarmDescription) -> Capacity:
    """The capacity of a node. Raises FarmError if a node refuses the MEPs, or for an unusable measurement."""
    readout, nodes = description.readout, description.nodes
    numbers = NodeNumbers.of(description)
    slots = numbers.slots
    needed = sum(numbers.part_bytes)
    if slots.mep_bytes < needed:
        raise FarmError(
            f"node.builder.max_mep_bytes: {slots.mep_bytes}, but a MEP has {needed} bytes: raise it to at least "
            f"{needed}, or lower readout.events_per_mep"
        )
    allowed = batch_limits(numbers.config).events_per_mep
    if readout.events_per_mep > allowed:
        is_batch = slots.events < readout.events_per_mep
        key, given = ("max_events", slots.events) if is_batch else ("max_events_per_mep", allowed)
        raise FarmError(
            f"node.pipeline.{key}: {given}, but a MEP has {readout.events_per_mep} events: raise it to at least "
            f"{readout.events_per_mep}, or lower readout.events_per_mep"
        )
    frame, largest = frame_bytes(description), numbers.config.network.max_frame_bytes
    if frame > largest:
        raise FarmError(
            f"node.network.max_frame_bytes: {largest}, but a fragment needs a frame of {frame} bytes: raise it to at "
            f"least {frame}, or lower readout.events_per_mep"
        )
    meps = min(slots.input_bytes // slots.mep_bytes, slots.events // readout.events_per_mep, slots.meps)
    events = int(meps) * readout.events_per_mep
    seconds = service_times(description.service, np.random.default_rng(0)).mean(events)
    written = nodes.accepted * readout.event_bytes
    return Capacity(
        batch_events=events,
        compute=nodes.back_ends * events / seconds,
        link=nodes.link_bytes_per_second / readout.event_bytes,
        disk=nodes.disk_bytes_per_second / written if written else math.inf,
    )


def nodes_at_least(description: FarmDescription) -> int:
    """The number of nodes whose capacity is the mean rate: fewer cannot work."""
    rate = description.readout.events_per_second * mean_rate_factor(description)
    return math.ceil(rate / capacity(description).of_node * (1.0 - 1e-9))


def require_possible(description: FarmDescription) -> None:
    """Refuse a farm that cannot work. Raises FarmError, one line for each number that is missing."""
    if not description.readout.sources:
        raise FarmError("readout.sources: 0, expected at least one source")
    problems = list(_problems(description, capacity(description)))
    if problems:
        raise FarmError("\n".join(problems))


def _problems(description: FarmDescription, of_node: Capacity) -> Iterator[str]:
    readout, nodes = description.readout, description.nodes
    rate = readout.events_per_second * mean_rate_factor(description)
    if description.mep_bytes > readout.buffer_bytes:
        yield (
            f"readout.buffer_bytes: {readout.buffer_bytes:.0f}, but a MEP has {description.mep_bytes} bytes: raise "
            f"it to at least {description.mep_bytes}"
        )
    from_source = rate * readout.event_bytes / readout.sources
    if from_source > readout.source_bytes_per_second:
        yield (
            f"readout.source_bytes_per_second: {readout.source_bytes_per_second / _GIGABIT:.3g} Gb/s, but a source "
            f"sends {from_source / _GIGABIT:.3g} Gb/s"
        )
    network = description.network
    if (all_bytes := rate * readout.event_bytes) > network.switch_bytes_per_second:
        yield (
            f"network.switch_bytes_per_second: {network.switch_bytes_per_second / _GIGABIT:.3g} Gb/s, but the sources "
            f"send {all_bytes / _GIGABIT:.3g} Gb/s"
        )
    of_rack = all_bytes * min(1.0, max(1, network.nodes_of_rack) / nodes.count)
    if of_rack > network.rack_bytes_per_second:
        yield (
            f"network.rack_bytes_per_second: {network.rack_bytes_per_second / _GIGABIT:.3g} Gb/s, but the nodes of a "
            f"rack get {of_rack / _GIGABIT:.3g} Gb/s"
        )
    # The decay of a fill lowers the rate, so the start decides only about the buffers.
    if rate > nodes.count * of_node.of_node * (1.0 + 1e-9) and not readout.lifetime_seconds:
        yield (
            f"nodes.count: {nodes.count} nodes carry {nodes.count * of_node.of_node:.4g} events/s (limit: "
            f"{of_node.limit}), but the sources make {rate:.4g} events/s: at least {nodes_at_least(description)} nodes "
            "are needed"
        )
    yield from _slow_consumers(description, rate)


def _slow_consumers(description: FarmDescription, rate: float) -> Iterator[str]:
    """Consumers that are slower than the nodes send, with a policy that makes the nodes wait for them."""
    config, readout = description.node_config(), description.readout
    of_output = {
        ConsumerOutput.DECISIONS: rate / readout.events_per_mep / config.decisions.meps_per_message,
        ConsumerOutput.EVENTS: rate * description.nodes.accepted,
    }
    for output, messages in of_output.items():
        rates = [(i, each.messages_per_second) for i, each in enumerate(description.consumers) if each.output is output]
        if not rates or policy_of(config, output) is not SlowConsumerPolicy.WAIT:
            continue
        is_shared = output is ConsumerOutput.EVENTS and config.events.kind is EventSocketKind.PUSH
        slowest, taken = min(rates, key=lambda each: each[1])
        if is_shared:
            taken = sum(each for _, each in rates)
        if messages > taken * (1.0 + 1e-9) and not readout.lifetime_seconds:
            of = f"{len(rates)} consumers of {output} take" if is_shared else "it takes"
            yield (
                f"consumers.{slowest}.messages_per_second: {of} {taken:.4g} messages/s, but the nodes send "
                f"{messages:.4g} messages/s and wait for it (node.{output}.policy)"
            )
