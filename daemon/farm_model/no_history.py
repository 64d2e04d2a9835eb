"""A history of the event builder that keeps nothing."""

from collections.abc import Iterable

from hltnode.daemon.event_building.history import History
from hltnode.daemon.event_building.stimuli_and_effects import Effect, Stimulus


class NoHistory(History):
    """The histories of hundreds of nodes are not read; each MEP would add nearly three entries to them."""

    def __init__(self) -> None:
        super().__init__(0)

    def note(self, now_ns: int, stimulus: Stimulus | None, effects: Iterable[Effect]) -> None:
        """Note nothing."""
