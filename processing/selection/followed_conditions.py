"""Conditions of a trigger configuration that a node may change between two runs, such as the position of the beam."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.selection.configuration.conditions import measured_quantities
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig, content_hash
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain


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
    """Prepares a trigger configuration with other values of the measured conditions."""

    def __init__(self, chain: TriggerChain, geometry: Constants, trigger: TriggerConfig) -> None:
        self._chain = chain
        self._geometry = geometry
        self._histograms = frozenset(histogram.shape.name for histogram in chain.filled_histograms(trigger))
        self._columns = frozenset(condition.column.name for condition in chain.conditions) & geometry.keys()
        self.configured = self._prepared(trigger)
        """The trigger configuration as it was given."""
        self.current = self.configured
        """The configuration in use; its owner changes it from run to run."""

    def with_values(self, values: Mapping[str, float]) -> PreparedConditions:
        """The configuration with these values in addition to, or instead of, its own conditions.

        Raises TriggerConfigError for an unknown condition and a value out of its range.
        """
        trigger = self.configured.trigger
        conditions = tuple(sorted({**dict(trigger.conditions), **values}.items()))
        return self._prepared(replace(trigger, conditions=conditions))

    def of_document(self, document: TckDocument) -> PreparedConditions | None:
        """The configuration with the values of a document; None if they differ in more than the measured conditions."""
        given = document.content.get("conditions", {})
        values = {each.name: float(given[each.name]) for each in self.configured.measured if each.name in given}
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
