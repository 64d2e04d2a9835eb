"""A drain is woken by ticks; nothing polls."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.run_control import controller as module
from hltnode.daemon.run_control.controller import RunController
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

TURNS = 20


class DrainingNode:
    """A controller that drains, and the state that it waits for."""

    def __init__(self, held_seconds: float = 0.0) -> None:
        self.builder = SimpleNamespace(open={1: "a MEP"}, is_idle=False)
        self.calls: list[str] = []
        self.failures: list[str] = []
        control = SimpleNamespace(
            builder=self.builder,
            open_runs=lambda _run: 0,
            pause=lambda: self.calls.append("pause"),
            close_open=lambda: self.calls.append("close_open"),
            leave_run=lambda: self.calls.append("leave_run"),
            abandon=lambda: self.calls.append("abandon"),
        )
        self.controller = RunController(
            cast(Any, control),
            Counters(),
            warm_up=self._warm_up,
            reload=lambda: "",
            summary=lambda: "",
            failed=self._fail,
            held_seconds=held_seconds,
        )

    async def _warm_up(self) -> None:
        pass

    def _fail(self, reason: str) -> None:
        self.failures.append(reason)
        self.controller.fail()

    async def start(self) -> None:
        await self.controller.configure_now()
        assert self.controller.execute(CommandName.START).ok
        assert self.controller.execute(CommandName.STOP).ok
        await self.turns()

    async def turns(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def state(self) -> RunState:
        return self.controller.state

    async def tick(self) -> None:
        self.controller.tick()
        await self.turns()


async def test_a_drain_continues_with_the_tick_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_QUIET_SECONDS", 1000.0)
    node = DrainingNode()
    await node.start()
    node.builder.open = {}
    monkeypatch.setattr(module, "DRAIN_QUIET_SECONDS", 0.0)
    await node.turns()
    assert node.calls == ["pause"]
    await node.tick()
    assert node.calls == ["pause", "close_open"]
    await node.tick()
    assert node.state() is RunState.DRAINING
    node.builder.is_idle = True
    await node.turns()
    assert node.state() is RunState.DRAINING
    await node.tick()
    assert node.calls == ["pause", "close_open", "leave_run"]
    assert node.state() is RunState.READY
    assert not node.failures


async def test_a_drain_closes_open_meps_after_some_time_without_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DRAIN_QUIET_SECONDS", 0.01)
    node = DrainingNode()
    node.builder.open = {}
    node.builder.is_idle = True
    await node.start()
    async with asyncio.timeout(30):
        await node.controller.shut_down()
    assert node.calls == ["pause", "close_open", "leave_run"]
    assert node.state() is RunState.READY


async def test_a_drain_that_is_abandoned_ends_without_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_QUIET_SECONDS", 1000.0)
    node = DrainingNode()
    await node.start()
    node.controller.abandon()
    async with asyncio.timeout(30):
        await node.controller.shut_down()
    assert "close_open" not in node.calls


async def test_a_pipeline_that_does_not_finish_fails_the_node_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DRAIN_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(module, "DRAIN_SECONDS", 0.05)
    node = DrainingNode()
    node.builder.open = {}
    await node.start()
    async with asyncio.timeout(30):
        await node.controller.shut_down()
    assert node.failures == ["the pipeline did not finish while draining"]
    assert node.state() is RunState.ERROR


async def test_a_drain_waits_longer_for_meps_that_wait_for_a_combiner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAIN_SECONDS", 0.0)
    node = DrainingNode(held_seconds=1000.0)
    node.builder.open = {}
    await node.start()
    await node.tick()
    assert node.calls == ["pause", "close_open"]
    assert node.state() is RunState.DRAINING
    node.builder.is_idle = True
    await node.tick()
    assert node.state() is RunState.READY
    assert not node.failures
