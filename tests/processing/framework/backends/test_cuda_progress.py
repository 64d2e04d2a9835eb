"""The progress of the CUDA back end's queue, with a stream and events that a test steers."""

from __future__ import annotations

from typing import Any

import pytest

from hltnode.processing.framework.backends.cuda import CudaQueue


class FakeEvent:
    done = False

    def record(self, _stream: object) -> None:
        self.done = False

    def synchronize(self) -> None:
        self.done = True


class FakeStream:
    ptr = 0

    def __init__(self, **_options: object) -> None:
        pass

    def __enter__(self) -> FakeStream:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def begin_capture(self) -> None:
        pass

    def end_capture(self) -> FakeGraph:
        return FakeGraph()


class FakeGraph:
    def upload(self, _stream: object) -> None:
        pass

    launch = upload


class FakeCupy:
    """As much of CuPy as a queue without launches needs."""

    def __init__(self) -> None:
        self.events: list[FakeEvent] = []
        self.cuda: Any = self
        self.runtime: Any = self
        self.Stream = FakeStream
        self.CUDARuntimeError = RuntimeError

    def Event(self) -> FakeEvent:  # noqa: N802
        self.events.append(FakeEvent())
        return self.events[-1]

    def get_elapsed_time(self, _first: FakeEvent, _last: FakeEvent) -> float:
        return 1.0


@pytest.mark.parametrize("waits", [False, True])
def test_each_event_of_the_stream_that_is_passed_is_a_step(waits: bool) -> None:
    cupy = FakeCupy()
    queue = CudaQueue(cupy, {}, [], None)
    assert queue.progress == 0
    for batch in range(3):
        queue.submit([], [])
        for step, event in enumerate(cupy.events):
            assert not queue.poll()
            assert queue.progress == 4 * batch + step
            if waits and step == 1:
                queue.wait()
                break
            event.done = True
        assert queue.poll()
        assert queue.progress == 4 * (batch + 1)
