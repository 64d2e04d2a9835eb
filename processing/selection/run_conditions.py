"""The conditions of the runs in files: each run of a sample is processed with its own, from a folder."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Self

from hltnode.processing.framework.engine import Engine
from hltnode.processing.selection.configuration.conditions import acting_values
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import ConditionsError
from hltnode.processing.selection.followed_conditions import FollowedConditions, both_set_conditions
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

Events = Iterable[EventTable | Sequence[RawBank]]


class RunConditions:
    """Gives an engine the conditions of each run of a sample.

    Raises ConditionsError if the trigger configuration sets conditions too.
    """

    def __init__(
        self, chain: TriggerChain, geometry: Constants, trigger: TriggerConfig, folder: ConditionsFolder | None
    ) -> None:
        self._folder = folder
        self._followed = FollowedConditions(chain, geometry, trigger, folder)
        self.documents: dict[int, TckDocument] = {}
        """The trigger configuration of each run that has begun."""

    @classmethod
    def load(cls, chain: TriggerChain, geometry: Constants, trigger: TriggerConfig, path: Path | None) -> Self:
        """The conditions of a folder; without one every run has those of the trigger configuration.

        Raises ConditionsError, which names the file.
        """
        folder = None if path is None else ConditionsFolder.load(path, chain.name, chain.conditions)
        return cls(chain, geometry, trigger, folder)

    def in_runs(self, engine: Engine, events: Events) -> Iterator[Events]:
        """The events in pieces of one run; all events as one piece without a folder.

        The engine has the conditions of the run when its piece is taken, which must be processed to its end before the
        next one. An event whose run cannot be read belongs to the run before it.

        Raises ConditionsError, which names the run, for a run without conditions.
        """
        if self._folder is None:
            yield events
            return
        for run, pieces in groupby(_by_run(events), key=itemgetter(0)):
            if run is not None:
                self._begin(engine, run)
            yield (table for _, table in pieces)

    def _begin(self, engine: Engine, run: int) -> None:
        assert self._folder is not None
        chosen = self._followed.with_values(dict(self._followed.values_of(run, self._folder)))
        if chosen.tck != engine.tck:
            engine.replace_constants(chosen.constants, chosen.measured, chosen.tck)
        self.documents[run] = chosen.document


def with_conditions_of(chain: TriggerChain, trigger: TriggerConfig, path: Path, run: int | None) -> TriggerConfig:
    """A trigger configuration with the conditions of a run in a folder. Raises ConditionsError if it has none."""
    if run is None:
        raise ConditionsError("the run of the event cannot be read, so its conditions are not known")
    folder = ConditionsFolder.load(path, chain.name, chain.conditions)
    if trigger.conditions:
        raise both_set_conditions(trigger, folder)
    columns = chain.with_sequence(trigger.sequence).sequence.columns
    return replace(trigger, conditions=acting_values(folder.values_of(run), chain.conditions, columns))


def _by_run(events: Events) -> Iterator[tuple[int | None, EventTable]]:
    """Consecutive events of one run, with the run; None before the first readable ODIN bank."""
    run: int | None = None
    for given in events:
        table = given if isinstance(given, EventTable) else EventTable.of_events([given])
        begin = 0
        for event, banks in enumerate(table.of_types([BankType.ODIN])):
            found = _run_of(banks)
            if found is None or found == run:
                continue
            if event > begin:
                yield run, table[begin:event]
            run, begin = found, event
        if begin < len(table):
            yield run, table[begin:]


def _run_of(banks: Sequence[RawBank]) -> int | None:
    try:
        return decode_odin(banks[0]).run if banks else None
    except ProtocolError:
        return None
