"""Nodes that end start again: at once, then after pauses that grow, and not without end."""

import pytest

from hltnode.daemon.commands.farm.local.processes import FarmFailedError
from hltnode.daemon.commands.farm.local.restarts import FIRST_PAUSE_SECONDS, MOST_RESTARTS, STEADY_SECONDS, Restarts


class Node:
    def __init__(self, name: str = "node0") -> None:
        self.name = name
        self.is_alive = True
        self.starts: list[float] = []
        self.ends = 0
        self.now_s = 0.0

    def note_end(self) -> int:
        self.ends += 1
        return 3

    def last_lines(self) -> str:
        return "no GPU"

    def start(self) -> None:
        self.is_alive = True
        self.starts.append(self.now_s)


class Bench:
    def __init__(self, *nodes: Node) -> None:
        self.nodes = nodes
        self.said: list[str] = []
        self.restarts = Restarts(nodes, 0.0, self.said.append)

    def check(self, now_s: float) -> None:
        for node in self.nodes:
            node.now_s = now_s
        self.restarts.check(now_s)

    def end(self, node: Node, now_s: float) -> None:
        node.is_alive = False
        self.check(now_s)


def test_the_first_restart_comes_at_once_and_the_pauses_before_the_others_double() -> None:
    node = Node()
    bench = Bench(node)
    now_s = 5.0
    for pause in (0.0, *(FIRST_PAUSE_SECONDS * 2.0**i for i in range(MOST_RESTARTS - 1))):
        bench.end(node, now_s)
        if pause:
            assert not node.is_alive
            bench.check(now_s + 0.99 * pause)
            assert not node.is_alive
        now_s += pause
        bench.check(now_s)
        assert node.starts[-1] == now_s
    assert len(node.starts) == node.ends == MOST_RESTARTS


def test_the_farm_fails_with_the_end_of_the_log_when_a_node_has_ended_too_often() -> None:
    node = Node()
    bench = Bench(node)
    now_s = 0.0
    for _ in range(MOST_RESTARTS):
        bench.end(node, now_s)
        bench.check(now_s + STEADY_SECONDS / 2)
        assert node.is_alive
        now_s += 0.9 * STEADY_SECONDS
    with pytest.raises(FarmFailedError, match="node0 ended with exit code 3, after 6 restarts in a row") as failed:
        bench.end(node, now_s)
    assert "no GPU" in str(failed.value)


def test_a_node_that_has_run_long_enough_begins_again_without_a_pause() -> None:
    node = Node()
    bench = Bench(node)
    bench.end(node, 1.0)
    bench.end(node, 1.0 + STEADY_SECONDS)
    assert node.starts == [1.0, 1.0 + STEADY_SECONDS]
    bench.end(node, 1.0 + 1.9 * STEADY_SECONDS)
    assert len(node.starts) == 2


def test_the_status_names_the_node_its_pause_and_its_restarts() -> None:
    node, other = Node("node1"), Node("node2")
    bench = Bench(node, other)
    assert bench.restarts.text(0.0) == ""
    bench.end(node, 10.0)
    bench.end(node, 11.0)
    bench.end(node, 12.0)
    bench.check(13.0)
    bench.end(node, 14.0)
    assert bench.restarts.text(15.0) == "node1 starts again in 1 s (restart 3 of at most 6)"
    assert bench.said[-1] == "node1 ended with exit code 3; it starts again in 2 s (restart 3 of at most 6)"


def test_a_node_that_waits_at_the_end_of_the_farm_starts_for_its_accounts() -> None:
    node, other = Node("node1"), Node("node2")
    bench = Bench(node, other)
    bench.end(node, 1.0)
    bench.end(node, 2.0)
    bench.restarts.start_waiting(2.1)
    assert node.is_alive
    assert (len(node.starts), other.starts) == (2, [])
    assert bench.restarts.text(2.1) == ""
