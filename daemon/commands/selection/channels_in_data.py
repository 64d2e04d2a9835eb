"""Compares hits in files with the masked channels of a folder of conditions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.commands.common import end_with_damage, thread_count
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.channel_groups import Contradiction, contradictions
from hltnode.processing.framework.event_files import DamageLog, read_all_tables
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.offline.chain_tools import installed_tools
from hltnode.processing.selection.configuration.conditions_folder import ConditionsFolder
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.run_conditions import RunConditions
from hltnode.processing.selection.trigger_chain import TriggerChain

EVENTS_PER_MEP = 16
LIMITS = BatchLimits(events=128, input_bytes=16 << 20)


def without_masks(folder: ConditionsFolder) -> ConditionsFolder:
    """The folder without its lists of channels: their hits are counted."""
    return replace(
        folder,
        intervals=tuple(
            replace(interval, values=tuple(each for each in interval.values if not isinstance(each[1], tuple)))
            for interval in folder.intervals
        ),
    )


def missing_channels(
    chain: TriggerChain, folder: ConditionsFolder, trigger: TriggerConfig, geometry: Path | None
) -> list[str]:
    """Masked channels that the detector does not have, by interval; those of the parts that the sequence reads."""
    make = installed_tools(chain.name).channels
    if make is None or not any(isinstance(value, tuple) for each in folder.intervals for _, value in each.values):
        return []
    groups = make().groups(chain.with_sequence(trigger.sequence).load_geometry(geometry))
    found = []
    for interval in folder.intervals:
        values = dict(interval.values)
        for each in groups:
            numbers = np.array(values.get(each.condition, ()), np.int64)
            if len(absent := numbers[~np.isin(numbers, each.numbers[each.exists])]):
                more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
                found.append(f"{interval.name}: {each.condition}: the detector has no {each.name} {absent[0]}{more}")
    return found


def compare_with_data(
    chain: TriggerChain,
    folder: ConditionsFolder,
    trigger: TriggerConfig,
    files: Sequence[Path],
    geometry: Path | None,
) -> tuple[int, list[Contradiction]]:
    """The number of events in the files, and the groups of channels whose hits contradict the conditions.

    Raises ValueError for a chain without groups of channels, and for events of more than one interval of runs;
    ConditionsError for a run without conditions.
    """
    make = installed_tools(chain.name).channels
    if make is None:
        raise ValueError(f"the chain {chain.name} does not count hits by groups of channels")
    channels = make()
    sequence = chain.with_sequence(trigger.sequence)
    constants = sequence.load_geometry(geometry)
    made = channels.columns(sequence.sequence)
    engine = chain.create_engine(
        create_backend("cpu", chain.kernels, threads=thread_count(0)),
        constants,
        trigger,
        LIMITS,
        retain=made,
        with_lists=False,
    )
    runs = RunConditions(chain, constants, trigger, without_masks(folder))
    groups = channels.groups(constants)
    hits: list[NDArray[np.int64]] = [np.zeros(len(each.numbers), np.int64) for each in groups]
    damage = DamageLog()
    n_events = 0
    try:
        runner = OfflineRunner(engine)
        for events in runs.in_runs(engine, read_all_tables(files, damage)):
            for batch in runner.run(encode_meps(engine.chain, events, EVENTS_PER_MEP)):
                n_events += batch.workspace.n_events
                for total, each in zip(hits, groups, strict=True):
                    total += channels.count(each, constants, batch.workspace)
    finally:
        engine.close()
    end_with_damage(damage)
    intervals = {folder.interval_of(run) for run in runs.documents}
    if len(intervals) > 1:
        names = ", ".join(sorted(interval.name for interval in intervals))
        raise ValueError(f"--data: the events belong to several intervals ({names}): check their files one by one")
    if not intervals:
        raise ValueError("--data: no event has a readable run number")
    values = dict(next(iter(intervals)).values)
    found: list[Contradiction] = []
    for each, counted in zip(groups, hits, strict=True):
        numbers = values.get(each.condition, ())
        assert isinstance(numbers, tuple)
        found += contradictions(each, counted, each.masked(numbers))
    return n_events, found


def as_table(found: Sequence[Contradiction], most: int) -> list[str]:
    """The contradictions as text, those of a kind at most `most` times."""
    lines: list[str] = []
    kinds = dict.fromkeys((each.kind, each.finding) for each in found)
    for kind, finding in kinds:
        those = [each for each in found if (each.kind, each.finding) == (kind, finding)]
        lines += [f"{kind} {each.number}: {finding}: {each.hits}, expected {each.expected:g}" for each in those[:most]]
        if len(those) > most:
            lines.append(f"{kind}: {finding}: {len(those) - most} more")
    return lines
