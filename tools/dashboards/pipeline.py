"""The way of a MEP through the node in time, the back end, and the GPU."""

from tools.dashboards.elements import NODES, Board, Panel, Query, Shape, gauge, number, quantile, quantiles, rate


def mean(metric: str, by: str) -> str:
    """The mean of a histogram."""
    return f"{rate(metric + '_sum', by)} / {rate(metric + '_count', by)}"


PIPELINE = Board(
    uid="hltnode-pipeline",
    title="HLT1: pipeline and GPU",
    numbers=(
        number("Batches per second", f"sum({rate('hlt1_batches_total')})"),
        number("Events of a batch", f"sum({rate('hlt1_events_processed_total')}) / sum({rate('hlt1_batches_total')})"),
        number("Slots that are free", f'sum(hlt1_slots{{{NODES},state="free"}})', warn=1, alarm=0, low_is_bad=True),
        number("Decision, 99 %", f"max({quantile('hlt1_end_to_end_seconds', 0.99)})", "s", warn=0.5, alarm=1),
        number("Failed batches", f"sum(increase(hlt1_backend_errors_total{{{NODES}}}[1h]))", warn=1, alarm=1),
        number("MEPs left out", f"sum(increase(hlt1_meps_not_processed_total{{{NODES}}}[1h]))", warn=1, alarm=1),
    ),
    rows={
        "Timeline of a MEP": (
            Panel(
                "From the first fragment to the decision, mean of each stage",
                "s",
                (Query(mean("hlt1_mep_stage_seconds", "stage"), "{{stage}}"),),
                "Stacked in time: build, seal, queue, compute, gather, write, publish.",
                Shape.STACKED,
                width=12,
            ),
            Panel(
                "The same, 99 % of each stage",
                "s",
                (Query(quantile("hlt1_mep_stage_seconds", 0.99, "stage"), "{{stage}}"),),
                width=12,
            ),
            Panel("From the first fragment to the decision", "s", quantiles("hlt1_mep_latency_seconds"), width=12),
            Panel("From close to decision", "s", quantiles("hlt1_end_to_end_seconds"), warn=0.5, alarm=1, width=12),
        ),
        "Back end": (
            Panel(
                "Slots by state",
                "none",
                (Query(f"sum by (state) (hlt1_slots{{{NODES}}})", "{{state}}"),),
                "",
                Shape.STACKED,
            ),
            Panel("Time of a batch by stage", "s", quantiles("hlt1_stage_seconds", "stage")),
            Panel(
                "Waiting behind the back end",
                "bytes",
                (
                    gauge("hlt1_output_queue_bytes", "gathered {{instance}}"),
                    gauge("hlt1_event_bytes_pending", "for the disk {{instance}}"),
                ),
            ),
        ),
        "GPU": (
            Panel(
                "Load",
                "percentunit",
                (gauge("hlt1_gpu_utilization_ratio"),),
                "Part of the time in which a kernel runs.",
            ),
            Panel(
                "Memory",
                "bytes",
                (
                    gauge("hlt1_gpu_memory_used_bytes", "taken {{instance}}"),
                    gauge("hlt1_gpu_memory_bytes", "there {{instance}}"),
                ),
                "By all processes.",
            ),
            Panel("Temperature", "celsius", (gauge("hlt1_gpu_temperature_celsius"),), "", warn=80, alarm=90),
            Panel(
                "Power",
                "watt",
                (
                    gauge("hlt1_gpu_power_watts", "taken {{instance}}"),
                    gauge("hlt1_gpu_power_limit_watts", "limit {{instance}}"),
                ),
            ),
            Panel("Clock", "hertz", (gauge("hlt1_gpu_sm_clock_hertz"),)),
            Panel(
                "Slowed down, memory errors",
                "none",
                (
                    Query(f"max by (instance, reason) (hlt1_gpu_throttled{{{NODES}}})", "{{reason}} {{instance}}"),
                    Query(f"hlt1_gpu_uncorrected_memory_errors_total{{{NODES}}}", "memory errors {{instance}}"),
                ),
                "Why the clocks are lower than they could be; power is the limit that was set.",
            ),
        ),
    },
)
