"""The back ends of a node that dies."""

from hltnode.daemon.farm_model.back_ends import BackEnds
from hltnode.daemon.farm_model.clock import Clock
from hltnode.daemon.farm_model.measures import FarmCounts


def test_jobs_of_a_dead_node_never_end_and_its_servers_are_free_again() -> None:
    clock, begun, ended = Clock(), list[str](), list[str]()
    back_ends: BackEnds[str] = BackEnds(
        clock, 2, FarmCounts(), service_ns=lambda _: 10, begun=begun.append, ended=ended.append
    )
    for job in ("a", "b", "c"):
        back_ends.submit(job)
    clock.run(5)
    assert begun == ["a", "b"]
    back_ends.lose_all()
    for job in ("d", "e", "f"):
        back_ends.submit(job)
    clock.run(14)
    # The end of a and b at 10 ns frees no server.
    assert (begun, ended) == (["a", "b", "d", "e"], [])
    clock.run()
    assert (begun, ended) == (["a", "b", "d", "e", "f"], ["d", "e", "f"])
    assert back_ends.busy_ns == 30
