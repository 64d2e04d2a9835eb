"""Runs of the model of a farm in several processes."""

import pickle
from collections.abc import Generator, Sequence
from contextlib import closing

from hltnode.daemon.farm_model.description import FarmDescription, FarmError
from hltnode.daemon.farm_model.questions import NamedFarm, Progress, Runs
from hltnode.daemon.farm_model.results import RunRecord, run_record
from hltnode.processing.offline.worker_processes import results_in_order


class RunsOfProcesses(Runs):
    """Runs in several processes, each of which has one farm at a time. Results are those of one process."""

    def __init__(self, each: int, processes: int, told: Progress) -> None:
        super().__init__(each, told)
        self._processes = processes

    def records(self, farms: Sequence[NamedFarm]) -> Generator[RunRecord | FarmError]:
        """The numbers of each farm, in order. Raises ChildProcessError if a process was killed."""
        if min(self._processes, len(farms)) == 1:
            yield from super().records(farms)
            return
        self.told(f"{len(farms)} runs in {min(self._processes, len(farms))} processes")
        with closing(results_in_order(_pickled_record, [(farm,) for _, farm in farms], self._processes)) as made:
            for (name, _), record in zip(farms, made, strict=True):
                found: RunRecord | FarmError = pickle.loads(record)
                self.told(f"after {name}")
                yield found


def _pickled_record(farm: FarmDescription) -> bytes:
    try:
        return pickle.dumps(run_record(farm))
    except FarmError as error:
        return pickle.dumps(error)
