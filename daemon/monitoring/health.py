"""Whether the node is alive, healthy and ready, with the reason if not.

Alive (watchdog) is what ends the node if it does not hold; healthy (`/healthz`) is whether what comes in goes out;
ready (`/readyz`) is whether feeders should send. Times are those of the clock by which the node reads its sockets, so
that a node which was stopped is not judged by what it could not do. The parts of the node write the attributes, the
HTTP server, the collector and the watchdog read them.
"""

from dataclasses import dataclass
from enum import StrEnum, unique

# The loop sets its tick every second; five missed ticks are a stall and no longer jitter.
LOOP_STALL_NS = 5_000_000_000
# The pipeline ticks while the oldest batch makes progress, by one event or block on a CPU and by one copy or
# all kernels of a batch on a GPU. The densest event takes 0.03 s of a slow core, the densest batch a second of a GPU.
PIPELINE_STALL_NS = 30_000_000_000


@unique
class Condition(StrEnum):
    """What has to hold; LOOP and PIPELINE for liveness, ACKNOWLEDGEMENTS too and a DISK that is not refusing for long
    for health, all of them for readiness."""

    LOOP = "loop"
    PIPELINE = "pipeline"
    ACKNOWLEDGEMENTS = "acknowledgements"
    CONFIGURED = "configured"
    WARMED_UP = "warmed_up"
    FEEDERS = "feeders"
    DISK = "disk"
    OUTPUTS = "outputs"
    SERVING = "serving"


@dataclass(slots=True)
class Health:
    """State of the conditions; times are nanoseconds."""

    loop_tick_ns: int
    pipeline_tick_ns: int
    feeders_expected: int
    unhealthy_after_ns: int = 30_000_000_000
    """How long a disk may refuse and built MEPs may stay without an acknowledgement."""
    configured: bool = False
    warmed_up: bool = False
    feeders_connected: int = 0
    unacknowledged_since_ns: int | None = None
    """Since when MEPs are built, none is acknowledged and the back end makes no progress."""
    disk_problem: str | None = None
    disk_problem_since_ns: int = 0
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
            problems[Condition.PIPELINE] = f"the back end made no progress with its oldest batch for {age / 1e9:.1f} s"
        return problems

    def health_problems(self, now_ns: int) -> dict[Condition, str]:
        """Conditions of health that do not hold, each with its reason."""
        problems = self.liveness_problems(now_ns)
        limit = self.unhealthy_after_ns
        if self.unacknowledged_since_ns is not None and (age := now_ns - self.unacknowledged_since_ns) > limit:
            cause = self.disk_problem or self.output_problem or "the back end or the output thread does not finish"
            problems[Condition.ACKNOWLEDGEMENTS] = f"no built MEP acknowledged for {age / 1e9:.1f} s: {cause}"
        if self.disk_problem is not None and (age := now_ns - self.disk_problem_since_ns) > limit:
            problems[Condition.DISK] = f"{self.disk_problem}, for {age / 1e9:.1f} s"
        return problems

    def problems(self, now_ns: int) -> dict[Condition, str]:
        """Conditions of readiness that do not hold, each with its reason."""
        problems = self.health_problems(now_ns)
        if not self.configured:
            problems[Condition.CONFIGURED] = "configuration not applied yet"
        if not self.warmed_up:
            problems[Condition.WARMED_UP] = "back end not warmed up yet"
        if self.feeders_connected < self.feeders_expected:
            problems[Condition.FEEDERS] = f"{self.feeders_connected} of {self.feeders_expected} feeders connected"
        if self.disk_problem is not None:
            problems.setdefault(Condition.DISK, self.disk_problem)
        if self.output_problem is not None:
            problems[Condition.OUTPUTS] = self.output_problem
        if self.draining:
            problems[Condition.SERVING] = "draining"
        elif self.not_taking is not None:
            problems[Condition.SERVING] = self.not_taking
        return problems
