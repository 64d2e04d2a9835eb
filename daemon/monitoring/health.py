"""Whether the node is alive and whether it is ready, with the reason if not.

Alive (`/healthz`, watchdog) is what a restart would cure; ready (`/readyz`) is whether feeders should send. The parts
of the node write the attributes, the HTTP server, the collector and the watchdog read them.
"""

from dataclasses import dataclass
from enum import StrEnum, unique

# The loop sets its tick every second; five missed ticks are a stall and no longer jitter.
LOOP_STALL_NS = 5_000_000_000
# The pipeline ticks between batches. The densest batch of 4096 events takes about 10 s on one slow core.
PIPELINE_STALL_NS = 30_000_000_000


@unique
class Condition(StrEnum):
    """What has to hold; LOOP and PIPELINE for liveness, all of them for readiness."""

    LOOP = "loop"
    PIPELINE = "pipeline"
    CONFIGURED = "configured"
    WARMED_UP = "warmed_up"
    FEEDERS = "feeders"
    DISK = "disk"
    OUTPUTS = "outputs"
    SERVING = "serving"


@dataclass(slots=True)
class Health:
    """State of the conditions; times are monotonic nanoseconds."""

    loop_tick_ns: int
    pipeline_tick_ns: int
    feeders_expected: int
    configured: bool = False
    warmed_up: bool = False
    feeders_connected: int = 0
    disk_problem: str | None = None
    output_problem: str | None = None
    draining: bool = False
    not_taking: str | None = None
    """Why the run control does not let feeders send, None while it does."""

    def liveness_problems(self, now_ns: int) -> dict[Condition, str]:
        """Conditions of liveness that do not hold, each with its reason; the pipeline counts once it is warmed up."""
        problems = {}
        if (age := now_ns - self.loop_tick_ns) > LOOP_STALL_NS:
            problems[Condition.LOOP] = f"event loop has not ticked for {age / 1e9:.1f} s"
        if self.warmed_up and (age := now_ns - self.pipeline_tick_ns) > PIPELINE_STALL_NS:
            problems[Condition.PIPELINE] = f"pipeline thread has not ticked for {age / 1e9:.1f} s"
        return problems

    def problems(self, now_ns: int) -> dict[Condition, str]:
        """Conditions of readiness that do not hold, each with its reason."""
        problems = self.liveness_problems(now_ns)
        if not self.configured:
            problems[Condition.CONFIGURED] = "configuration not applied yet"
        if not self.warmed_up:
            problems[Condition.WARMED_UP] = "back end not warmed up yet"
        if self.feeders_connected < self.feeders_expected:
            problems[Condition.FEEDERS] = f"{self.feeders_connected} of {self.feeders_expected} feeders connected"
        if self.disk_problem is not None:
            problems[Condition.DISK] = self.disk_problem
        if self.output_problem is not None:
            problems[Condition.OUTPUTS] = self.output_problem
        if self.draining:
            problems[Condition.SERVING] = "draining"
        elif self.not_taking is not None:
            problems[Condition.SERVING] = self.not_taking
        return problems
