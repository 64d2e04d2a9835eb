"""A chain that a node can run: it decides, with lines and constants that a trigger configuration may change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.selection.decisions import accepted, line_table, lines
from hltnode.processing.selection.trigger_config import Menu, TriggerConfig

ENTRY_POINTS = "hltnode.chains"
"""The group of entry points under which installed packages offer chains."""

Constants = Mapping[str, NDArray[np.uint8]]
"""The content of constant columns by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerChain(Chain):
    """A chain with selection lines, whose kernel reads decisions.line_table and writes decisions.lines and accepted.

    menu: its line types, and the lines that run by default.
    load_geometry: the constants of the detector, from a folder of files or as built in (None). Raises ValueError,
    which names the file.
    """

    accepted: Column | None = accepted
    lines: Column | None = lines
    menu: Menu
    load_geometry: Callable[[Path | None], Constants]

    def load_trigger(self, path: Path | None) -> TriggerConfig:
        """The trigger configuration of a file, or the built-in one. Raises TriggerConfigError."""
        return TriggerConfig.default(self.menu) if path is None else TriggerConfig.load(path, self.menu)

    def create_engine(
        self,
        backend: Backend,
        geometry: Constants,
        trigger: TriggerConfig,
        limits: BatchLimits,
        *,
        retain: Retain = (),
    ) -> Engine:
        """The engine that runs this chain with a geometry and a trigger configuration.

        The number of lines in `limits` becomes that of the configuration.

        retain: columns that Workspace.fetch finds after a batch.

        Raises TriggerConfigError for constants that the sequence does not have, BackendError where memory is short.
        """
        return Engine(
            backend,
            replace(self, sequence=trigger.configure(self.sequence)),
            {**geometry, line_table.name: trigger.line_table().view(np.uint8)},
            replace(limits, lines=len(trigger.lines)),
            line_names=trigger.line_names,
            tck=trigger.tck(self.sequence),
            retain=retain,
        )


def installed_chain(name: str) -> TriggerChain:
    """The chain that an installed package offers under a name.

    Raises ValueError, which names those that there are, or what is wrong with this one.
    """
    offered = entry_points(group=ENTRY_POINTS)
    if name not in offered.names:
        raise ValueError(f"no chain named {name!r}: installed are {', '.join(sorted(offered.names)) or 'none'}")
    try:
        chain = offered[name].load()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"chain {name!r}: {offered[name].value} cannot be loaded: {error}") from error
    if not isinstance(chain, TriggerChain):
        raise ValueError(f"chain {name!r}: {offered[name].value} is no TriggerChain")
    return chain
