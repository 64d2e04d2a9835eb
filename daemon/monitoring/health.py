"""Whether the node is alive, healthy and ready, with the reason if not.

Alive: the watchdog ends a node that is not alive. Healthy (`/healthz`): the node finishes the MEPs that it receives.
Ready (`/readyz`): feeders should send, and their run can start and go on. Times are those of the clock that runs while the node reads its sockets, so that
a stopped process does not count as unhealthy. The parts of the node write the attributes; the HTTP server, the
collector and the watchdog read them.
"""

from dataclasses import dataclass
from enum import StrEnum, unique

# The loop sets its tick every second; five missed ticks are a stall, not jitter.
LOOP_STALL_NS = 5_000_000_000
# The pipeline ticks at each progress of the oldest batch in the back end: one event or block on a CPU, one copy or all
# kernels of a batch on a GPU. The densest event takes 0.03 s of a slow core, the densest batch a second of a GPU.
PIPELINE_STALL_NS = 30_000_000_000


@unique
class Condition(StrEnum):
    """Conditions of the states.

    Liveness needs LOOP and PIPELINE; health also needs ACKNOWLEDGEMENTS and a DISK without a long refusal; readiness
    needs all.
    """

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
    """Longest time of a refusing disk, and of built MEPs without an acknowledgement."""
    configured: bool = False
    warmed_up: bool = False
    feeders_connected: int = 0
    feeders_needed: int = 0
    """Feeders that the current run needs, where feeders announce more than the configuration expects."""
    run_waits: str | None = None
    """The feeders without which the current run cannot start or its floor cannot rise; None if it lacks none."""
    run_waits_seconds: float = 0.0
    unacknowledged_since_ns: int | None = None
    """Start of the time with built MEPs, no acknowledgement and no progress of the back end."""
    disk_problem: str | None = None
    disk_problem_since_ns: int = 0
    output_problem: str | None = None
    draining: bool = False
    not_taking: str | None = None
    """Why the run control keeps feeders from sending; None if they may send."""

    def liveness_problems(self, now_ns: int) -> dict[Condition, str]:
        """Violated conditions of liveness, each with its reason; the pipeline counts after warm-up."""
        problems = {}
        if (age := now_ns - self.loop_tick_ns) > LOOP_STALL_NS:
            problems[Condition.LOOP] = f"event loop has not ticked for {age / 1e9:.1f} s"
        if self.warmed_up and (age := now_ns - self.pipeline_tick_ns) > PIPELINE_STALL_NS:
            problems[Condition.PIPELINE] = (
                f"the back end has made no progress with its oldest batch for {age / 1e9:.1f} s"
            )
        return problems

    def health_problems(self, now_ns: int) -> dict[Condition, str]:
        """Violated conditions of health, each with its reason."""
        problems = self.liveness_problems(now_ns)
        limit = self.unhealthy_after_ns
        if self.unacknowledged_since_ns is not None and (age := now_ns - self.unacknowledged_since_ns) > limit:
            cause = self.disk_problem or self.output_problem or "the back end or the output thread does not finish"
            problems[Condition.ACKNOWLEDGEMENTS] = f"no built MEP acknowledged for {age / 1e9:.1f} s: {cause}"
        if self.disk_problem is not None and (age := now_ns - self.disk_problem_since_ns) > limit:
            problems[Condition.DISK] = f"{self.disk_problem}, for {age / 1e9:.1f} s"
        return problems

    def problems(self, now_ns: int) -> dict[Condition, str]:
        """Violated conditions of readiness, each with its reason."""
        problems = self.health_problems(now_ns)
        if not self.configured:
            problems[Condition.CONFIGURED] = "configuration not applied yet"
        if not self.warmed_up:
            problems[Condition.WARMED_UP] = "back end not warmed up yet"
        if self.run_waits is not None:
            problems[Condition.FEEDERS] = f"{self.run_waits}; for {self.run_waits_seconds:.0f} s"
        elif self.feeders_connected < self.feeders_expected:
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
