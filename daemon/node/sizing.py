"""Limits of batches, slots and the event builder, computed from the configuration so that they are consistent."""

from hltnode.daemon.common.vocabulary import EventStream, MonitorContent
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.slots import SlotLimits
from hltnode.daemon.event_building.stimuli_and_effects import BuilderLimits, SetTimes
from hltnode.daemon.requests.request_queue import ROOM_STEP, RequestLimits
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.transport.decisions import max_events_of_decision


def batch_limits(config: NodeConfig) -> BatchLimits:
    """Limits of one batch, for the engine and the slots."""
    defaults = BatchLimits()
    events = config.pipeline.max_events
    meps = min(events, defaults.meps)
    sources = config.builder.expected_sources
    return BatchLimits(
        events=events,
        meps=meps,
        input_bytes=config.pipeline.slot_bytes,
        # A slot has memory for the fragments of all its MFPs: with few sources it needs few.
        rows=defaults.rows if sources is None else min(defaults.rows, meps * max(1, len(sources))),
        events_per_mep=min(events, config.pipeline.max_events_per_mep or defaults.events_per_mep),
    )


def request_batch_limits(config: NodeConfig) -> BatchLimits:
    """Limits of one batch of requests, for the engine that computes them."""
    requests, defaults = config.requests, BatchLimits()
    return BatchLimits(
        events=requests.max_events,
        meps=min(requests.max_events, defaults.meps),
        input_bytes=-(-requests.max_bytes // ROOM_STEP) * ROOM_STEP,
        rows=defaults.rows,
        events_per_mep=min(requests.max_events, defaults.events_per_mep),
    )


def request_limits(config: NodeConfig) -> RequestLimits:
    """Limits of a batch, of the queue and of a client of the request socket."""
    requests, batch = config.requests, request_batch_limits(config)
    return RequestLimits(
        batch_events=batch.events,
        batch_bytes=batch.input_bytes,
        batch_mfps=batch.rows,
        batch_requests=batch.meps,
        queue_requests=requests.queue,
        queue_bytes=requests.queue_bytes,
        client_requests=requests.queue_per_client,
    )


def names_of_lists(config: NodeConfig) -> frozenset[str]:
    """The output lists that a node delivers, for files and decisions."""
    return frozenset((*config.output.lists, *config.decisions.lists))


def gathered_streams(config: NodeConfig) -> frozenset[EventStream]:
    """The series whose kept events are copied out of their slots: for files or for a socket."""
    streams = set(config.output.streams)
    for stream, section in ((EventStream.ACCEPTED, config.events), (EventStream.ERROR, config.errors)):
        if section.endpoint is not None:
            streams.add(stream)
    if config.monitor.endpoint is not None and config.monitor.content is MonitorContent.EVENTS:
        streams |= set(EventStream)
    return frozenset(streams)


def slot_limits(config: NodeConfig) -> SlotLimits:
    """Limits of one slot: one batch of complete MEPs."""
    limits = batch_limits(config)
    return SlotLimits(
        input_bytes=limits.input_bytes,
        events=limits.events,
        meps=limits.meps,
        fragments=limits.rows,
        mep_bytes=config.builder.max_mep_bytes,
    )


def max_events_per_mep(config: NodeConfig, n_lines: int) -> int:
    """Largest number of events of a MEP: its events fit into one batch, and its decisions into one message."""
    return min(batch_limits(config).events_per_mep, max_events_of_decision(n_lines))


def changing_times(config: NodeConfig) -> SetTimes:
    """The deadlines (ns) of the event builder that a reload may change."""
    return SetTimes(
        mep_timeout_ns=config.builder.mep_timeout_ms * 1_000_000,
        flush_deadline_ns=config.pipeline.flush_deadline_us * 1_000,
    )


def builder_limits(config: NodeConfig) -> BuilderLimits:
    """Deadlines (ns) and policies of the event builder."""
    builder, times = config.builder, changing_times(config)
    return BuilderLimits(
        mep_timeout_ns=times.mep_timeout_ns,
        feeder_timeout_ns=builder.feeder_timeout_ms * 1_000_000,
        overtaken_ns=builder.overtaken_after_ms * 1_000_000,
        evict_ns=builder.evict_after_ms * 1_000_000,
        flush_deadline_ns=times.flush_deadline_ns,
        closed_ring=builder.closed_ring,
        error_on=builder.error_on(),
        head_room=config.streaming.head_room,
        thin_to_one_of=config.streaming.thin_to_one_of,
        # Feeders have credits for the free places of a slot, which an early seal would take away. Datagrams have none.
        seals_for_idle=config.latency.serial and config.udp.endpoint is not None,
    )


def decides_directly(config: NodeConfig, gpu: int | None) -> bool:
    """Whether the threads that receive datagrams may decide MEPs: with one CPU thread, for plain decisions."""
    latency = config.latency
    return (
        latency.serial
        and latency.decisions_first
        and config.udp.endpoint is not None
        and config.pipeline.threads == 1
        and gpu is None
        and not config.decisions.lists
    )


def held_seconds(config: NodeConfig) -> float:
    """Longest time that computed slices wait for a combiner; 0 without one."""
    combiner = config.combiner
    return 0.0 if combiner.endpoint is None else max(combiner.hold_ms, combiner.timeout_ms) / 1000
