"""Compares the answers of /readyz with the progress of a run."""

from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_UNFOUNDED_SECONDS = 10.0
"""A node that is ready acknowledges MEPs. It may wait 5 s for a silent feeder before it says that it lacks one."""
LONGEST_REFUSAL_SECONDS = 2.0
"""A node whose floor rises is ready: it decides that anew every second."""
_STEADY_SECONDS = 1.0
"""Two rises of the floor in this time are one steady rise. Feeders report four times a second."""


@dataclass(slots=True)
class Readiness:
    """The longest times for which a node said the contrary of what the floor of its run showed. Times in seconds."""

    unfounded_s: float = 0.0
    """The node was ready, and its floor did not rise."""
    refused_s: float = 0.0
    """The node was not ready, and its floor rose."""
    refusal: str = ""
    """The problems that the node named then."""
    _floor: int | None = None
    _rose: float = 0.0
    _ready_since: float | None = None
    _refusing: float | None = None
    """Time of the first rise of a steady rise during a refusal."""

    def add(self, now: float, problems: Mapping[str, str], floor: int) -> None:
        """Note an answer, and the id below which all MEPs are acknowledged."""
        rises = self._floor is not None and floor > self._floor
        if self._floor is None or rises:
            if now - self._rose > _STEADY_SECONDS:
                self._refusing = None
            self._floor, self._rose = floor, now
        if problems:
            self._ready_since = None
            if rises:
                if self._refusing is None:
                    self._refusing = now
                if (refused := now - self._refusing) > self.refused_s:
                    self.refused_s = refused
                    self.refusal = ", ".join(f"{name}: {why}" for name, why in problems.items())
            return
        self._refusing = None
        if self._ready_since is None:
            self._ready_since = now
        self.unfounded_s = max(self.unfounded_s, now - max(self._ready_since, self._rose))
