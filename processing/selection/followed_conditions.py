"""Conditions of a trigger configuration that a node may change between two runs, such as the position of the beam."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.selection.configuration.conditions import (
    Value,
    Values,
    acting_values,
    measured_quantities,
    parse_conditions,
)
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig, content_hash
from hltnode.processing.selection.errors import ConditionsError
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain


def both_set_conditions(trigger: TriggerConfig, folder: ConditionsFolder) -> ConditionsError:
    """The error of a trigger configuration with conditions of its own beside a folder."""
    return ConditionsError(
        f"conditions.{trigger.conditions[0][0]}: the trigger configuration and the folder {folder.path} both set "
        "conditions; remove those of the trigger configuration"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedConditions:
    """A trigger configuration with certain values of its conditions.

    constants: u8 of the constant columns that conditions change, by name. measured: the measured conditions with their
    values in these constants.
    """

    trigger: TriggerConfig
    document: TckDocument
    constants: Constants
    measured: tuple[MeasuredQuantity, ...]

    @property
    def tck(self) -> int:
        """Key of the configuration with these values."""
        return self.document.tck


class FollowedConditions:
    """Prepares a trigger configuration with other values of its conditions: measured ones, or those of a folder.

    folder: the conditions of each run; None if runs take those that the run before has measured. A trigger
    configuration with conditions of its own is refused with a folder (ConditionsError), which has them all.
    """

    def __init__(
        self, chain: TriggerChain, geometry: Constants, trigger: TriggerConfig, folder: ConditionsFolder | None = None
    ) -> None:
        if folder is not None and trigger.conditions:
            raise both_set_conditions(trigger, folder)
        self.folder = folder
        self._chain = chain
        self._geometry = geometry
        self._histograms = frozenset(histogram.shape.name for histogram in chain.filled_histograms(trigger))
        columns = (column for condition in chain.conditions for column in condition.columns)
        self._columns = frozenset(column.name for column in columns) & geometry.keys()
        self.configured = self._prepared(trigger)
        """The trigger configuration as it was given."""
        self.current = self.configured
        """The configuration in use; its owner changes it from run to run."""

    def values_of(self, run: int, folder: ConditionsFolder) -> Values:
        """Those conditions of a run in a folder that act in the sequence. Raises ConditionsError without any."""
        sequence = self._chain.with_sequence(self.configured.trigger.sequence).sequence
        return acting_values(folder.values_of(run), self._chain.conditions, sequence.columns)

    def read_again(self) -> ConditionsFolder | None:
        """The present content of the folder. Raises ConditionsError, which names the file."""
        folder = self.folder
        return None if folder is None else ConditionsFolder.load(folder.path, self._chain.name, self._chain.conditions)

    def with_values(self, values: Mapping[str, Value]) -> PreparedConditions:
        """The configuration with these values in addition to, or instead of, its own conditions.

        Raises TriggerConfigError for an unknown condition and a value out of its range.
        """
        trigger = self.configured.trigger
        conditions = tuple(sorted({**dict(trigger.conditions), **values}.items()))
        return self._prepared(replace(trigger, conditions=conditions))

    def of_document(self, document: TckDocument) -> PreparedConditions | None:
        """The configuration with the values of a document; None if they differ in more than the conditions that may
        change."""
        given = dict(parse_conditions(document.content.get("conditions", {})))
        may_change = {
            *(each.name for each in self.configured.measured if each.follows),
            *(each.name for each in self._chain.conditions if self.folder is not None),
        }
        values = {name: value for name, value in given.items() if name in may_change}
        prepared = self.with_values(values) if values else self.configured
        same = content_hash(prepared.document.content) == content_hash(document.content)
        return prepared if same else None

    def _prepared(self, trigger: TriggerConfig) -> PreparedConditions:
        document = self._chain.document(trigger)
        constants = self._chain.with_conditions(self._geometry, trigger)
        return PreparedConditions(
            trigger=trigger,
            document=document,
            constants={name: constants[name] for name in self._columns},
            measured=measured_quantities(constants, self._chain.conditions, self._histograms),
        )
