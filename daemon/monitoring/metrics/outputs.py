"""Metrics of what leaves: messages over sockets, and files."""

from collections.abc import Callable

from hltnode.daemon.monitoring.counters import OutputCounters, StreamCounters
from hltnode.daemon.monitoring.metrics.rows import ByLabel, counter, counters, gauge, gauges


def _of_outputs(value: Callable[[OutputCounters], int]) -> ByLabel:
    return lambda r: [(name, value(output)) for name, output in r.counters.outputs.items()]


def _of_streams(value: Callable[[StreamCounters], int]) -> ByLabel:
    return lambda r: [(name, value(stream)) for name, stream in r.counters.writer.streams.items()]


OUTPUTS = (
    # Outputs over sockets
    counters("output_messages_sent", "Messages sent.", "output", _of_outputs(lambda output: output.sent)),
    counters(
        "output_messages_dropped",
        "Messages dropped by the policy of the output.",
        "output",
        _of_outputs(lambda output: sum(output.dropped.values())),
    ),
    counters(
        "output_blocked",
        "Attempts refused by the queue of the consumer.",
        "output",
        _of_outputs(lambda output: output.blocked),
    ),
    gauges(
        "output_messages_queued",
        "Messages kept for a slow consumer.",
        "output",
        _of_outputs(lambda output: output.queued),
    ),
    counter(
        "decisions_published", "Decisions handed to the socket of the publisher.", lambda r: r.counters.decisions.sent
    ),
    counters(
        "decisions_dropped",
        "Decisions not published, by reason.",
        "reason",
        lambda r: r.counters.decisions.dropped.items(),
    ),
    counter(
        "decisions_blocked", "Attempts refused by a full queue of a subscriber.", lambda r: r.counters.decisions.blocked
    ),
    gauge(
        "decision_subscriptions", "Subscriptions to the decision stream.", lambda r: r.counters.decisions.subscribers
    ),
    # Files
    counters("events_written", "Events handed to the disk.", "stream", _of_streams(lambda stream: stream.events)),
    counters("event_bytes_written", "Bytes handed to the disk.", "stream", _of_streams(lambda stream: stream.bytes)),
    counters(
        "event_files_finished", "Files renamed to their final name.", "stream", _of_streams(lambda stream: stream.files)
    ),
    counters(
        "events_not_stored",
        "Kept events of a series without files (output.streams).",
        "stream",
        lambda r: r.counters.events_not_stored.items(),
    ),
    counters(
        "events_dropped",
        "Events not written because the disk refused them.",
        "stream",
        _of_streams(lambda stream: stream.dropped),
    ),
    counters("write_errors", "Write attempts refused by the disk.", "kind", lambda r: r.counters.writer.errors.items()),
    gauge("event_bytes_pending", "Bytes waiting for the disk.", lambda r: r.counters.writer.pending_bytes),
    gauge(
        "output_queue_bytes",
        "Bytes of gathered records and decisions that are not yet acknowledged.",
        lambda r: r.state.output_queue_bytes,
    ),
    counters(
        "quarantined_events",
        "Events moved to quarantine/, by reason.",
        "reason",
        lambda r: r.counters.writer.quarantined_events.items(),
    ),
    counters(
        "quarantined_files",
        "Files written to quarantine/, by reason.",
        "reason",
        lambda r: r.counters.writer.quarantined_files.items(),
    ),
    counter(
        "events_missing",
        "Acknowledged events of the journal that no file contained at the start.",
        lambda r: r.counters.writer.missing_events,
    ),
    counter(
        "revoked_meps_out_of_reach",
        "Revoked MEPs with events that are or may be in a finished file.",
        lambda r: r.counters.writer.out_of_reach_meps,
    ),
    counter(
        "journal_damage",
        "Places where the journal was unreadable at the start.",
        lambda r: r.counters.writer.journal_damage,
    ),
    counter(
        "power_cuts",
        "Starts after an outage of the machine in which the previous session did not end in order.",
        lambda r: r.counters.writer.power_cuts,
    ),
    counters(
        "histograms_saved",
        "Attempts to write a file of histograms.",
        "outcome",
        lambda r: r.counters.writer.histogram_files.items(),
    ),
    gauges(
        "output_free_bytes",
        "Free bytes of the file system of output.directory; NaN if they cannot be read.",
        "filesystem",
        lambda r: [(r.state.output_filesystem, r.state.output_free_bytes)],
    ),
)
