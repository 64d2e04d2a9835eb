"""Chooses the conditions of each run, such as the position of the beam, before its first batch.

A run keeps its conditions, and with them its TCK, to its end, also if the node is restarted or another run comes in
between. A new run takes those of a folder of conditions, or what the run before it has measured.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.selection.configuration.conditions import Values
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.followed_conditions import FollowedConditions, PreparedConditions

# A smaller change, as a share of the tolerance, makes no new TCK: statistics alone move a median of 5,000 values by
# 0.004 mm, and 0.02 mm cost 0.3 % of the vertices.
MIN_CHANGE = 0.4
# Values are rounded to this share of the tolerance: 0.001 mm.
STEP = 0.02
MAX_RUNS = 1000
"""Largest number of runs whose conditions are remembered."""

Constants = Mapping[str, NDArray[np.uint8]]

log = get_logger("conditions_of_runs")


class Measurements(Protocol):
    """The measured numbers (`hltnode.daemon.monitoring.detector_conditions.DetectorConditions`)."""

    def measured_in(self, run: int, /) -> Mapping[str, float]: ...
    def use(self, quantities: Sequence[MeasuredQuantity], /, *, given: bool) -> None: ...


class Counts(Protocol):
    """The counts of histograms (`hltnode.daemon.compute.histogram_tally.HistogramTally`)."""

    def collect(self) -> None:
        """Hand the counts of all idle workspaces to the measurements."""


class _Chosen(NamedTuple):
    """The conditions of a run. The configuration itself, with its document, would take much more memory."""

    tck: int
    conditions: Values


class ConditionsOfRuns:
    """`begin` is called in the compute thread, the others in any thread.

    followed: the configuration that may change; None: every run has that of the engine. folder: the conditions of the
    runs, if they come from a folder.
    """

    def __init__(
        self, engine: Engine, followed: FollowedConditions | None, measurements: Measurements, counts: Counts
    ) -> None:
        self._engine = engine
        self._followed = followed
        self._measurements = measurements
        self._counts = counts
        self._run: int | None = None
        self._of_run: dict[int, _Chosen] = {}
        self.followers: list[Callable[[Constants, Sequence[MeasuredQuantity], int], None]] = []
        """Called with new constants, as `Engine.replace_constants`: other engines of the node."""
        self._admitted: dict[int, Values] = {}
        self.folder = None if followed is None else followed.folder
        """The folder of conditions in use; None: conditions are measured, or fixed."""

    def remember(self, documents: Mapping[int, TckDocument]) -> frozenset[int]:
        """Add the runs that earlier sessions have begun, with their configurations; returns those that can go on."""
        if self._followed is None:
            return frozenset()
        for run, document in documents.items():
            prepared = self._followed.of_document(document)
            if prepared is not None:
                self._of_run[run] = _Chosen(prepared.tck, prepared.trigger.conditions)
        return frozenset(self._of_run)

    def admit(self, run: int) -> None:
        """Note the conditions of a run that is about to begin.

        Raises ConditionsError, which names the run, if the folder of conditions has none.
        """
        if self._followed is None or self.folder is None or run in self._of_run or run in self._admitted:
            return
        self._admitted[run] = self._followed.values_of(run, self.folder)
        for oldest in list(self._admitted)[:-MAX_RUNS]:
            del self._admitted[oldest]
        log.info(
            "run_has_conditions", run=run, version=self.folder.version, intervals=self.folder.interval_of(run).name
        )

    def read_folder(self) -> ConditionsFolder | None:
        """The present content of the folder, which `use_folder` takes into use; None if there is no folder.

        Raises ConditionsError, which names the file.
        """
        return None if self._followed is None else self._followed.read_again()

    def use_folder(self, folder: ConditionsFolder) -> None:
        """Runs that begin from now on have the conditions of this folder."""
        self.folder = folder
        log.info("conditions_read", folder=str(folder.path), version=folder.version, digest=folder.digest)

    def begin(self, run: int) -> TckDocument | None:
        """Choose the conditions of a run, while the back end has no batch; the document of a key that is new to it.

        Raises ConditionsError for a run without conditions that was not admitted, BackendError if the back end cannot
        take the constants.
        """
        followed = self._followed
        if followed is None:
            return None
        last, self._run = self._run, run
        known = self._of_run.get(run)
        if known is not None:
            chosen = followed.with_values(dict(known.conditions))
        else:
            if self.folder is not None:
                values = self._admitted.get(run)
                chosen = followed.with_values(dict(followed.values_of(run, self.folder) if values is None else values))
            else:
                chosen = followed.current if last is None else self._after(last, run, followed)
            self._of_run[run] = _Chosen(chosen.tck, chosen.trigger.conditions)
            for oldest in list(self._of_run)[:-MAX_RUNS]:
                del self._of_run[oldest]
        if chosen.tck == followed.current.tck:
            return None
        before, followed.current = followed.current, chosen
        try:
            # The engine has the new key last: a thread that sees the key finds its conditions in `current`.
            self._engine.replace_constants(chosen.constants, chosen.measured, chosen.tck)
        except BaseException:
            followed.current = before
            raise
        # The values of the last run belong to its conditions.
        self._counts.collect()
        for follow in self.followers:
            follow(chosen.constants, chosen.measured, chosen.tck)
        self._measurements.use(chosen.measured, given=self.folder is not None)
        numbers: dict[str, object] = dict(chosen.trigger.conditions)
        numbers |= {each.name: round(each.configured, 6) for each in chosen.measured if each.follows}
        log.info("conditions_changed", run=run, tck=chosen.document.name, **numbers)
        return chosen.document

    def tck_of(self, run: int | None) -> int:
        """Key of the configuration of a run; that of the engine for a run that has not begun."""
        chosen = None if run is None else self._of_run.get(run)
        return self._engine.tck if chosen is None else chosen.tck

    @property
    def may_change(self) -> bool:
        """Whether runs may have different conditions."""
        return self._followed is not None

    def _after(self, last: int, run: int, followed: FollowedConditions) -> PreparedConditions:
        """The conditions that the run `last` has measured; those in use where it has measured nothing new."""
        self._counts.collect()
        current = followed.current
        measured = self._measurements.measured_in(last)
        values = {}
        for quantity in current.measured:
            value = measured.get(quantity.name)
            if value is None or not quantity.follows:
                continue
            if not quantity.low < value < quantity.high:
                log.warning(
                    "condition_not_followed",
                    run=run,
                    quantity=quantity.name,
                    measured=value,
                    low=quantity.low,
                    high=quantity.high,
                    unit=quantity.unit,
                )
            elif abs(value - quantity.configured) > MIN_CHANGE * quantity.tolerance:
                step = STEP * quantity.tolerance
                values[quantity.name] = round(round(value / step) * step, 9)
        if not values:
            return current
        return followed.with_values({**dict(current.trigger.conditions), **values})
