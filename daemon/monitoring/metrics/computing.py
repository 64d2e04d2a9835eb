"""Metrics of event building, the pipeline, decisions, and what was measured of the detector."""

import math

from hltnode.daemon.monitoring.metrics.rows import Kind, Row, counter, counters, gauge, gauges, histogram, histograms

COMPUTING = (
    # Event building
    counter("meps_opened", "MEPs with at least one received fragment.", lambda r: r.counters.meps_opened),
    counters("meps_closed", "MEPs closed, by reason.", "reason", lambda r: r.counters.meps_closed.items()),
    counter("meps_abandoned", "MEPs open at a forced stop, or revoked.", lambda r: r.counters.meps_abandoned),
    gauge("meps_open", "MEPs in build: opened = closed + abandoned + open.", lambda r: r.state.meps_open),
    counter(
        "accounting_broken",
        "Ends of runs at which fragments or MEPs were in no class of the accounting.",
        lambda r: r.counters.accounting_broken,
    ),
    # Pipeline
    gauges("slots", "Slots by state.", "state", lambda r: r.state.slots.items()),
    gauges(
        "slot_bytes",
        "Bytes of a slot on the device and pinned on the host; thread: bytes of each worker thread.",
        "memory",
        lambda r: (("device", r.memory.device), ("pinned", r.memory.pinned), ("thread", r.memory.thread)),
    ),
    gauge("plan_bytes_per_event", "Bytes per event of the largest batch.", lambda r: r.memory.per_event),
    counter("batches", "Batches computed.", lambda r: r.counters.batches),
    histograms("stage_seconds", "Time of a batch in a stage.", "stage", lambda r: r.counters.stages.items()),
    histograms(
        "mep_stage_seconds",
        "Time of a MEP in a stage between its first fragment and its decision.",
        "stage",
        lambda r: r.counters.mep_stages.items(),
    ),
    histograms(
        "mep_compute_seconds",
        "Time of a MEP in a part of the stage compute.",
        "part",
        lambda r: r.counters.mep_compute.items(),
    ),
    histogram(
        "mep_latency_seconds",
        "From the first fragment of a MEP until its decision is sent: the sum of its stages until then.",
        lambda r: r.counters.mep_latency,
    ),
    histogram(
        "end_to_end_seconds", "From the close of a MEP until its decision is sent.", lambda r: r.counters.end_to_end
    ),
    counter("backend_errors", "Batches that the back end could not compute.", lambda r: r.counters.backend_errors),
    counter(
        "meps_not_processed",
        "MEPs sent to the error stream without computation, because earlier sessions ended while computing them.",
        lambda r: r.counters.meps_not_processed,
    ),
    counters(
        "dead_time_seconds", "Time without free credits, by reason.", "reason", lambda r: r.counters.dead_time.items()
    ),
    # Decisions
    counter("events_processed", "Events with a decision.", lambda r: r.counters.events_processed),
    counter("events_accepted", "Events that at least one line accepted.", lambda r: r.counters.events_accepted),
    counters(
        "events_flagged",
        "Events that carry the flag.",
        "flag",
        lambda r: r.counters.events_flagged.items(),
    ),
    counters(
        "line_accepts",
        "Events that the line accepted.",
        "line",
        lambda r: zip(r.counters.lines, r.counters.line_accepts, strict=True),
    ),
    counter(
        "report_candidates_left_out",
        "Selected candidates that did not fit in the reports of their events.",
        lambda r: r.counters.candidates_left_out,
    ),
    counter(
        "decision_lists_left_out",
        "Output lists that did not fit in the decision messages of their MEPs (decisions.max_list_bytes).",
        lambda r: r.counters.lists_left_out,
    ),
    counters(
        "windows",
        "Windows of time of a streaming chain: slices, their bytes, late ones among them, windows that are kept, their "
        "records, hits and bytes.",
        "count",
        lambda r: r.counters.windows.items(),
    ),
    counters(
        "slices_dropped",
        "Time slices that the rule streaming.head_room dropped, because the buffers were full.",
        "rule",
        lambda r: r.counters.slices_dropped.items(),
    ),
    counters(
        "stream_seconds",
        "Time of the detector: of all slices, of late and of dropped ones, and in records of windows.",
        "time",
        lambda r: [(time, ns / 1e9) for time, ns in r.counters.stream_ns.items()],
    ),
    counters(
        "window_faults",
        "Windows, hits and bytes that are not kept as their chain wants.",
        "fault",
        lambda r: r.counters.window_faults.items(),
    ),
    counter("seeds_sent", "Seeds that were sent to the combiner.", lambda r: r.counters.held.seeds_sent),
    counter("combined_windows", "Windows that the combiner answered with.", lambda r: r.counters.held.windows_received),
    counter(
        "external_windows",
        "Windows that an operator asked the combiner for.",
        lambda r: r.counters.held.external_windows,
    ),
    gauge(
        "held_bytes",
        "Memory of slices that wait for the combiner, with their seeds and its answers.",
        lambda r: r.counters.held.held_bytes,
    ),
    gauge(
        "held_bytes_limit",
        "The bound on it (combiner.max_bytes); 0 without a combiner.",
        lambda r: r.counters.held.max_bytes,
    ),
    gauge(
        "held_oldest_seconds",
        "How long the oldest slice waits for the combiner.",
        lambda r: r.counters.held.oldest_s,
    ),
    gauge(
        "combiner_silent_seconds",
        "Time since the last message of the combiner, which answers every second; 0 without a combiner.",
        lambda r: r.counters.held.silent_s,
    ),
    gauge("held_slices", "Slices that wait for the combiner.", lambda r: r.counters.held.held_slices),
    counters(
        "held_slices_left",
        "Slices that were held, by their end: windows of the combiner, timeout, memory needed.",
        "end",
        lambda r: r.counters.held.slices.items(),
    ),
    counters(
        "seed_faults",
        "Messages, windows and slices that node and combiner could not exchange.",
        "fault",
        lambda r: r.counters.held.faults.items(),
    ),
    counter(
        "late_decisions",
        "Decisions that were sent after their deadline (latency.deadline_us).",
        lambda r: r.counters.late_decisions,
    ),
    counter(
        "decisions_sent_first",
        "Decisions that were sent before files and journal (latency.decisions_first).",
        lambda r: r.counters.decisions_first,
    ),
    counter(
        "decisions_sent_directly",
        "Decisions among them that were sent by the thread that received the last datagram of their MEP.",
        lambda r: r.counters.decisions_directly,
    ),
    counters(
        "objects",
        "Objects found in events, by collection of the chain.",
        "collection",
        lambda r: r.counters.objects.items(),
    ),
    # Numbers of the detector
    gauges(
        "detector_condition_measured",
        "Median of the last values of the histogram that measures the number, NaN before 5,000 values; -1 or 1 for the "
        "sign of magnet_polarity, NaN until the charges of the run show one.",
        "quantity",
        lambda r: [(c.name, math.nan if c.measured is None else c.measured) for c in r.state.detector_conditions],
    ),
    gauges(
        "detector_condition_configured",
        "The number that the kernels use, in the unit of the measured one.",
        "quantity",
        lambda r: [(c.name, c.configured) for c in r.state.detector_conditions],
    ),
    gauges(
        "detector_condition_tolerance",
        "Largest difference between measured and configured number that raises no alert.",
        "quantity",
        lambda r: [(c.name, c.tolerance) for c in r.state.detector_conditions],
    ),
    Row(
        Kind.GAUGE,
        "channel_groups_off",
        "Groups of channels that no condition masks and that had no hits (dead), or more than 6 times those of their "
        "neighbours (noisy), in the last comparison of the run.",
        ("kind", "finding"),
        lambda r: [
            ((each.kind, finding), len(numbers))
            for each in r.state.channels
            for finding, numbers in (each.found or {}).items()
        ],
    ),
    counters(
        "channel_hits",
        "Hits of a sample of the events, by the kind of the compared groups of channels.",
        "kind",
        lambda r: [(each.kind, each.hits) for each in r.state.channels],
    ),
    counters(
        "detector_condition_values",
        "Values of the histogram that measures the number.",
        "quantity",
        lambda r: [(c.name, c.values) for c in r.state.detector_conditions],
    ),
    gauges(
        "detector_condition_followed",
        "1 if the number that the kernels use was measured in an earlier run.",
        "quantity",
        lambda r: [(c.name, c.followed) for c in r.state.detector_conditions],
    ),
)
