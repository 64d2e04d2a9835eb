"""The times of a MEP in the node, the back end, and the GPU."""

from tools.dashboards.elements import NODES, Board, Panel, Query, Shape, gauge, number, quantile, quantiles, rate


def mean(metric: str, by: str) -> str:
    """The mean of a histogram."""
    return f"{rate(metric + '_sum', by)} / {rate(metric + '_count', by)}"


PIPELINE = Board(
    uid="hltnode-pipeline",
    title="HLT1: pipeline and GPU",
    numbers=(
        number("Batches per second", f"sum({rate('hltnode_batches_total')})"),
        number(
            "Events of a batch", f"sum({rate('hltnode_events_processed_total')}) / sum({rate('hltnode_batches_total')})"
        ),
        number("Slots that are free", f'sum(hltnode_slots{{{NODES},state="free"}})', warn=1, alarm=0, low_is_bad=True),
        number("Decision, 99 %", f"max({quantile('hltnode_end_to_end_seconds', 0.99)})", "s", warn=0.5, alarm=1),
        number("Failed batches", f"sum(increase(hltnode_backend_errors_total{{{NODES}}}[1h]))", warn=1, alarm=1),
        number("MEPs left out", f"sum(increase(hltnode_meps_not_processed_total{{{NODES}}}[1h]))", warn=1, alarm=1),
    ),
    rows={
        "Timeline of a MEP": (
            Panel(
                "From the first fragment to the decision, mean of each stage",
                "s",
                (Query(mean("hltnode_mep_stage_seconds", "stage"), "{{stage}}"),),
                "Stacked in time: build, seal, queue, compute, gather, write, publish.",
                Shape.STACKED,
                width=12,
            ),
            Panel(
                "The same, 99 % of each stage",
                "s",
                (Query(quantile("hltnode_mep_stage_seconds", 0.99, "stage"), "{{stage}}"),),
                width=12,
            ),
            Panel("From the first fragment to the decision", "s", quantiles("hltnode_mep_latency_seconds"), width=12),
            Panel("From close to decision", "s", quantiles("hltnode_end_to_end_seconds"), warn=0.5, alarm=1, width=12),
        ),
        "Back end": (
            Panel(
                "Slots by state",
                "none",
                (Query(f"sum by (state) (hltnode_slots{{{NODES}}})", "{{state}}"),),
                "",
                Shape.STACKED,
            ),
            Panel("Time of a batch by stage", "s", quantiles("hltnode_stage_seconds", "stage")),
            Panel(
                "Waiting behind the back end",
                "bytes",
                (
                    gauge("hltnode_output_queue_bytes", "gathered {{instance}}"),
                    gauge("hltnode_event_bytes_pending", "for the disk {{instance}}"),
                ),
            ),
        ),
        "GPU": (
            Panel(
                "Load",
                "percentunit",
                (gauge("hltnode_gpu_utilization_ratio"),),
                "Fraction of the time in which a kernel runs.",
            ),
            Panel(
                "Memory",
                "bytes",
                (
                    gauge("hltnode_gpu_memory_used_bytes", "taken {{instance}}"),
                    gauge("hltnode_gpu_memory_bytes", "there {{instance}}"),
                ),
                "By all processes.",
            ),
            Panel("Temperature", "celsius", (gauge("hltnode_gpu_temperature_celsius"),), "", warn=80, alarm=90),
            Panel(
                "Power",
                "watt",
                (
                    gauge("hltnode_gpu_power_watts", "taken {{instance}}"),
                    gauge("hltnode_gpu_power_limit_watts", "limit {{instance}}"),
                ),
            ),
            Panel("Clock", "hertz", (gauge("hltnode_gpu_sm_clock_hertz"),)),
            Panel(
                "Slowed down, memory errors",
                "none",
                (
                    Query(f"max by (instance, reason) (hltnode_gpu_throttled{{{NODES}}})", "{{reason}} {{instance}}"),
                    Query(f"hltnode_gpu_uncorrected_memory_errors_total{{{NODES}}}", "memory errors {{instance}}"),
                ),
                "Cause of reduced clocks; power: the configured limit.",
            ),
        ),
    },
)
