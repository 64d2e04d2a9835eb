"""The timeline of the CPU back end: records of the threads, and the idle time that follows from them."""

import numpy as np
import pytest

from benchmarks.profile import ProfiledSequence
from benchmarks.timeline import RecordedRunner, makespan, page, timeline_of
from hltnode.processing.framework.backends.cpu import RECORD, WHOLE_PROGRAM, WHOLE_STAGE, CpuQueue
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events

N_EVENTS, BATCHES, THREADS = 6, 3, 2


def test_blocks_go_to_the_thread_that_is_free_first() -> None:
    assert makespan([5, 1, 1, 1, 1], 2) == 5
    assert makespan([1, 1, 1, 1, 5], 2) == 7
    assert makespan([1, 2, 3], 1) == 6
    assert makespan([], 4) == 0


def test_idle_time_is_told_apart_by_its_reason() -> None:
    # A stage of one block of 4 us, then one of two blocks of 6 and 2 us. Thread 1 waits 1 us for a processor.
    rows = [
        (0, 4000, 4000, 0, 0, 0, 0), (0, 4000, 4000, 0, 0, 1, WHOLE_STAGE),
        (4000, 10000, 6000, 0, 1, 0, 1), (4000, 10000, 6000, 0, 1, 1, WHOLE_STAGE),
        (4000, 7000, 2000, 1, 1, 1, 1), (4000, 7000, 2000, 1, 1, 1, WHOLE_STAGE),
        (0, 10000, 9000, 0, 0, 0, WHOLE_PROGRAM),
    ]  # fmt: skip
    first = np.array(rows, RECORD)
    second = first.copy()
    second["begin"] += 13000
    second["end"] += 13000
    found = timeline_of([(["one", "two"], first), (["one", "two"], second)], [(2000, 3000, 500)], THREADS, events=4)
    assert found["measured_us"] == {
        "kernels": 24.0, "waits_for_a_processor": 2.0, "barriers": 14.0, "between_batches": 6.0,
    }  # fmt: skip
    assert found["us_per_event"] == {"kernels": 6.0, "host": 0.125, "idle_at_barriers_modelled": 4.0}
    assert found["modelled_speedup"]["kernels_alone"] == pytest.approx(24 / 20)
    assert found["modelled_speedup"]["with_host_on_these_processors"] == pytest.approx(24 / 20.25)
    assert [stage["modelled_idle_us"] for stage in found["stages"]] == [8.0, 8.0]
    assert [stage["blocks"] for stage in found["stages"]] == [2, 4]
    assert found["kernels"] == {"one": [2.0, 0.0], "two": [3.0, 1.0]}
    assert (found["batch_spans"], found["host_spans"]) == ([[0.0, 10.0], [13.0, 23.0]], [[2.0, 3.0, 0.5]])
    text = page({**found, "sequence": "velo", "events_of_a_batch": 2})
    assert "2 batches of 2 events, 2 threads" in text
    assert "data:image/svg" in text
    with pytest.raises(ValueError, match="at least one batch"):
        timeline_of([], [], THREADS, events=4)


def test_each_kernel_of_each_block_is_recorded_once_inside_its_stage_and_batch() -> None:
    sequence = ProfiledSequence("velo", None, BatchLimits(events=N_EVENTS, input_bytes=4 << 20), THREADS)
    events = list(simulate_events(N_EVENTS, seed=3, geometry=VeloGeometry.builtin(), nu=2.0))
    meps = list(encode_meps(CHAIN.with_sequence("velo"), events, N_EVENTS))
    runner = RecordedRunner(sequence.engine)
    queues = [workspace.queue for workspace in runner.workspaces if isinstance(workspace.queue, CpuQueue)]
    assert len(queues) == len(runner.workspaces)
    for queue in queues:
        queue.record = True
    assert sum(batch.workspace.n_events for batch in runner.run(meps * BATCHES)) == N_EVENTS * BATCHES
    parts = [part for queue in queues for part in queue.take_records()]
    assert not [part for queue in queues for part in queue.take_records()]
    assert len(parts) == len(runner.spans) == BATCHES
    for kernels, records in parts:
        (whole,) = records[records["step"] == WHOLE_PROGRAM]
        stages = records[records["step"] == WHOLE_STAGE]
        steps = records[records["step"] >= 0]
        assert len(np.unique(steps[["step", "block"]])) == len(steps)
        assert set(steps["step"].tolist()) == set(range(len(kernels)))
        of_events = steps[steps["step"] == kernels.index("decode_odin")]
        assert sorted(of_events["block"].tolist()) == list(range(N_EVENTS))
        assert (stages["begin"] >= whole["begin"]).all()
        assert (stages["end"] <= whole["end"]).all()
        for row in stages:
            inside = steps[(steps["stage"] == row["stage"]) & (steps["thread"] == row["thread"])]
            assert len(np.unique(inside["block"])) == row["block"]
            assert (inside["begin"] >= row["begin"]).all()
            assert (inside["end"] <= row["end"]).all()
            assert (inside["end"] >= inside["begin"]).all()
            # The kernels of a block run one after the other.
            ordered = inside[np.argsort(inside["begin"], kind="stable")]
            assert (ordered["begin"][1:] >= ordered["end"][:-1]).all()
    found = timeline_of(parts, runner.spans, THREADS, N_EVENTS * BATCHES)
    assert 1.0 <= found["modelled_speedup"]["kernels_alone"] <= THREADS
    sequence.engine.close()
