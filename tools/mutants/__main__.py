"""Make each wrong change of changes.toml in a copy of the repository and run its tests (`make mutants`).

The copies, in build/mutants, have environments of their own; the first run makes them. A copy holds the committed
state: changes that are not committed are not tested. Results are kept in the repository, next to the list: the table
has those of earlier runs whose room and tests are still the same, and --resume runs only the other changes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock

from tools.mutants.change_list import ROOT, Change, ChangeListError, check, load
from tools.mutants.results import (
    NOTICED,
    ObjectsOf,
    Outcome,
    Result,
    deciding_paths,
    git_objects,
    read_results,
    results_of_this_code,
    share_noticed,
    table,
    write_results,
)
from tools.mutants.working_copy import CopyError, Trial, WorkingCopy

FOLDER = ROOT / "build/mutants"
RESULTS = ROOT / "tools/mutants/results.json"
LEAST_SHARE = 0.85
"""The exit code is 1 if tests notice a smaller share of the changes, or if a survivor has no explanation."""
TRIALS_AT_ONCE = 8
"""After this number of changes, the tests that failed are run without a change, and the results are written."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check that each old text occurs once in its file")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="changes whose file or name contains one of these"
    )
    parser.add_argument("--number", type=int, metavar="N", help="run at most N changes")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of copies that work at once (1)")
    parser.add_argument("--resume", action="store_true", help="run only changes that have no result of this code")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table of the results so far")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="JSON file")
    options = parser.parse_args(arguments)
    try:
        changes = load()
        check(changes)
    except ChangeListError as error:
        print(error, file=sys.stderr)
        return 1
    if options.check:
        return 0
    results = results_of_this_code(changes, read_results(options.results), git_objects(ROOT))
    changes = [c for c in changes if any(text in c.file or text in c.name for text in options.only)]
    waiting = [] if options.table else [c for c in changes if not (options.resume and c.name in results)]
    # First what needs no build, so that most results come soon.
    waiting.sort(key=lambda change: change.is_native)
    failures = _run_all(waiting[: options.number], results, options.results, options.jobs)
    print(table(changes, results))
    share = share_noticed(changes, results)
    print(f"\n{share:.0%} of the changes that were run were noticed.")
    for failure in failures:
        print(failure, file=sys.stderr)
    lost = [
        c.name for c in changes if c.name in results and results[c.name].outcome is Outcome.SURVIVED and not c.survives
    ]
    return 1 if failures or lost or share < LEAST_SHARE else 0


def _run_all(waiting: Sequence[Change], results: dict[str, Result], path: Path, jobs: int) -> list[str]:
    """Run changes in parallel and add to `results`; returns what kept changes from being tried."""
    queue: SimpleQueue[Change] = SimpleQueue()
    for change in waiting:
        queue.put(change)
    lock = Lock()
    failures: list[str] = []

    def keep(copy: WorkingCopy, tried: Sequence[tuple[Change, Trial | None]], objects_of: ObjectsOf) -> None:
        failing = copy.failing_without_change({change.name: trial for change, trial in tried if trial})
        with lock:
            for change, trial in tried:
                if change.name in failing:
                    failures.append(f"{change.name}: its test fails without the change:\n{failing[change.name]}")
                    continue
                result = results[change.name] = _result(change, trial, objects_of)
                print(f"{result.outcome:14} {change.name:34} {result.seconds:6.1f} s  {result.by}", flush=True)
            write_results(path, results.values())

    def work(job: int) -> None:
        copy = WorkingCopy(ROOT, FOLDER / f"copy-{job}")
        # Of the copy, and not of ROOT, where a commit may follow meanwhile.
        objects_of = git_objects(copy.folder)
        tried: list[tuple[Change, Trial | None]] = []
        while True:
            try:
                change = queue.get_nowait()
            except Empty:
                keep(copy, tried, objects_of)
                return
            try:
                tried.append((change, copy.try_out(change)))
            except CopyError as error:
                with lock:
                    failures.append(str(error))
            if len(tried) == TRIALS_AT_ONCE:
                keep(copy, tried, objects_of)
                tried = []

    if waiting:
        with ThreadPoolExecutor(jobs) as pool:
            for future in [pool.submit(work, job) for job in range(1, jobs + 1)]:
                try:
                    future.result()
                except CopyError as error:
                    failures.append(str(error))
    return failures


def _result(change: Change, trial: Trial | None, objects_of: ObjectsOf) -> Result:
    if trial is None:
        outcome, by, seconds = Outcome.NOT_BUILT, "", 0.0
    else:
        outcome = Outcome.HUNG if trial.hung else Outcome.SURVIVED if trial.passed else Outcome.NOTICED
        by, seconds = trial.failed, trial.seconds
        assert (outcome in NOTICED) != trial.passed
    return Result(change.name, outcome, by, seconds, change.digest, objects_of(deciding_paths(change, by)))


if __name__ == "__main__":
    sys.exit(main())
