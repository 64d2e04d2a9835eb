"""Queues of the model against closed forms of queueing theory."""

import math

import numpy as np
import pytest

from hltnode.daemon.farm_model.back_ends import BackEnds
from hltnode.daemon.farm_model.clock import Clock
from hltnode.daemon.farm_model.description import ServiceSection
from hltnode.daemon.farm_model.measures import FarmCounts
from hltnode.daemon.farm_model.service_times import service_times
from tests.daemon.farm_model.farms import EVENTS_PER_MEP, run

SERVICE_NS = 1_000_000
JOBS = 200_000


def mean_wait(servers: int, load: float, spread: float, seed: int) -> float:
    """Mean wait of jobs with random arrivals, in units of the mean service time."""
    clock, counts = Clock(), FarmCounts()
    rng = np.random.default_rng(seed)
    section = ServiceSection(events_per_second=1e9 / SERVICE_NS, spread=spread)
    times = service_times(section, np.random.default_rng(seed + 1))
    back_ends: BackEnds[int] = BackEnds(
        clock,
        servers,
        counts,
        service_ns=lambda _: round(times.draw(1) * 1e9),
        begun=lambda _: None,
        ended=lambda _: None,
    )
    arrivals = iter(np.cumsum(rng.exponential(SERVICE_NS / (load * servers), JOBS)).astype(int).tolist())

    def arrive(job: int) -> None:
        back_ends.submit(job)
        at_ns = next(arrivals, None)
        if at_ns is not None:
            clock.call_at(at_ns, arrive, job + 1)

    clock.call_at(next(arrivals), arrive, 0)
    clock.run()
    assert counts.service_wait.n == JOBS
    return counts.service_wait.mean * 1e9 / SERVICE_NS


def wait_of_constant_service(servers: int, load: float) -> float:
    """Mean wait of M/D/c in units of the service time, from the exact distribution of the number of jobs.

    After one service time, the jobs are those that waited and the arrivals: N' = max(N - c, 0) + Poisson(load c).
    """
    rate, size = load * servers, 200
    poisson = np.array([math.exp(-rate + n * math.log(rate) - math.lgamma(n + 1)) for n in range(size)])
    step = np.zeros((size, size))
    for n in range(size):
        waiting = max(n - servers, 0)
        step[n, waiting:] = poisson[: size - waiting]
    step[:, -1] += 1.0 - step.sum(axis=1)
    found = np.linalg.matrix_power(step, 4096)[0]
    return float((found * np.maximum(np.arange(size) - servers, 0)).sum() / rate)


def test_the_reference_of_one_server_is_the_formula_of_pollaczek_and_khinchine() -> None:
    assert wait_of_constant_service(1, 0.6) == pytest.approx(0.6 / (2 * 0.4), rel=1e-6)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (2, 0.6), (4, 0.7)])
def test_waits_for_constant_service_are_those_of_m_d_c(servers: int, load: float) -> None:
    assert mean_wait(servers, load, 0.0, seed=5) == pytest.approx(wait_of_constant_service(servers, load), rel=0.02)


@pytest.mark.parametrize(("load", "spread"), [(0.5, 0.5), (0.5, 1.0)])
def test_waits_for_a_spread_of_service_are_those_of_m_g_1(load: float, spread: float) -> None:
    expected = load * (1 + spread**2) / (2 * (1 - load))
    assert mean_wait(1, load, spread, seed=11) == pytest.approx(expected, rel=0.02)


def test_a_whole_farm_of_one_node_waits_like_its_queue() -> None:
    """One MEP fills a slot, so each MEP is a job of the back end; there are slots for all that wait."""
    load, service = 0.5, 1e-3
    farm = run(
        seconds=10.0,
        seed=3,
        readout={"events_per_second": load * EVENTS_PER_MEP / service, "arrivals": "poisson"},
        nodes={"count": 1, "link_bytes_per_second": 1e15, "disk_bytes_per_second": 1e15, "control_seconds": 0.0},
        service={"events_per_second": EVENTS_PER_MEP / service},
        node={
            "pipeline": {"slots": 64, "slot_bytes": 65_536, "max_events": EVENTS_PER_MEP},
            "builder": {"max_mep_bytes": 65_536},
            "network": {"max_frame_bytes": 65_536},
        },
    )
    assert farm.counts.service_wait.n == farm.counts.produced
    # 5000 MEPs: the standard error of the mean is about 3 %.
    assert farm.counts.service_wait.mean == pytest.approx(service * load / (2 * (1 - load)), rel=0.1)
