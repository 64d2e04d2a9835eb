"""The line types of a chain, its menus of lines, and what its configurations may name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hltnode.processing.selection.errors import TriggerConfigError, shown
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.lines.prefilter import Prefilter, named

DEFAULT_MENU = "default"
"""Name of the menu that runs by default, unless the chain names it otherwise."""


@dataclass(frozen=True, slots=True)
class NamedMenu:
    """Lines that a configuration may choose instead of the default ones.

    lines_of: lines by sequence name, for sequences that make more inputs than `lines` need.
    not_available: lines of the experiment that belong to it and that no sequence can run, with the reason.
    """

    lines: tuple[LineType, ...]
    not_available: Mapping[str, str] = field(default_factory=dict)
    lines_of: Mapping[str, tuple[LineType, ...]] = field(default_factory=dict)

    def of(self, sequence: str | None) -> tuple[LineType, ...]:
        """The lines of a sequence; None: the default one."""
        return self.lines if sequence is None else self.lines_of.get(sequence, self.lines)


@dataclass(frozen=True, slots=True)
class Menu:
    """The line types of a chain, which configurations name by class name, and its default lines.

    lines_of: default lines by sequence name, for sequences that make other inputs than those of `lines`.
    not_available: lines that no sequence can run, with the reason. prefilters: those that its lines and configurations
    may name. name: name of this menu; others: the menus that a configuration may choose instead. model_fields: fields
    of its inputs whose trees a configuration may name, with the number of their features.
    """

    types: tuple[type[LineType], ...]
    lines: tuple[LineType, ...]
    lines_of: Mapping[str, tuple[LineType, ...]] = field(default_factory=dict)
    not_available: Mapping[str, str] = field(default_factory=dict)
    prefilters: tuple[Prefilter, ...] = ()
    name: str = DEFAULT_MENU
    others: Mapping[str, NamedMenu] = field(default_factory=dict)
    model_fields: Mapping[str, int] = field(default_factory=dict)

    @property
    def prefilters_by_name(self) -> dict[str, Prefilter]:
        """The prefilters by their names."""
        return named(self.prefilters)

    def of(self, sequence: str | None, name: str | None = None) -> tuple[LineType, ...]:
        """The lines of a sequence, of the default menu or of the named one.

        Raises TriggerConfigError for an unknown name.
        """
        if name is not None and name in self.others:
            return self.others[name].of(sequence)
        if name not in (None, self.name):
            raise TriggerConfigError(
                f"menu.name: there is no menu {shown(name)}; there are {', '.join((self.name, *self.others))}"
            )
        return self.lines if sequence is None else self.lines_of.get(sequence, self.lines)
