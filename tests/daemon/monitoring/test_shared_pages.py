"""Pages for many requests: shared by those that wait, and within a budget of processor time."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from hltnode.daemon.monitoring.shared_pages import AT_ONCE_NS, PER_SECOND_NS, SharedPages

PAGE_NS = 50_000_000


class Bench:
    """Pages of a clock that stands still unless a page waits for its budget; each costs `PAGE_NS`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.cpu_ns = 0
        self.made = 0
        self.pages = SharedPages(lambda: self.now_ns, lambda: self.cpu_ns)
        sleep = asyncio.sleep

        async def wait(seconds: float) -> None:
            self.now_ns += int(seconds * 1e9) + 1
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", wait)

    def prepare(self) -> Callable[[], bytes]:
        def render() -> bytes:
            self.made += 1
            self.cpu_ns += PAGE_NS
            return b"%d" % self.made

        return render


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


@pytest.mark.parametrize("in_thread", [True, False])
async def test_requests_that_come_together_share_a_page(bench: Bench, in_thread: bool) -> None:
    requests = [bench.pages.get("/a", bench.prepare, in_thread=in_thread) for _ in range(100)]
    assert set(await asyncio.gather(*requests)) == {b"1"}
    assert await bench.pages.get("/a", bench.prepare, in_thread=in_thread) == b"2"


async def test_a_request_gets_no_page_that_was_begun_before_it_came(bench: Bench) -> None:
    began, may_end = threading.Event(), threading.Event()

    def prepare() -> Callable[[], bytes]:
        def render() -> bytes:
            began.set()
            may_end.wait(30)
            return b"early"

        return render

    early = asyncio.create_task(bench.pages.get("/a", prepare))
    await asyncio.to_thread(began.wait, 30)
    late = [asyncio.create_task(bench.pages.get("/a", bench.prepare)) for _ in range(10)]
    may_end.set()
    assert await early == b"early"
    assert set(await asyncio.gather(*late)) == {b"1"}


@pytest.mark.parametrize("in_thread", [True, False])
async def test_pages_take_no_more_of_the_processor_than_their_budget(bench: Bench, in_thread: bool) -> None:
    while bench.now_ns < 10_000_000_000:
        await bench.pages.get("/a", bench.prepare, in_thread=in_thread)
    assert bench.made == pytest.approx((AT_ONCE_NS + 10 * PER_SECOND_NS) / PAGE_NS, abs=2)


async def test_a_client_that_leaves_or_a_page_that_fails_spoils_no_other_request(bench: Bench) -> None:
    def fail() -> Callable[[], bytes]:
        raise RuntimeError("broken")

    leaves = asyncio.create_task(bench.pages.get("/a", bench.prepare))
    stays = asyncio.create_task(bench.pages.get("/a", bench.prepare))
    fails = asyncio.create_task(bench.pages.get("/b", fail))
    await asyncio.sleep(0)
    leaves.cancel()
    assert await stays == b"1"
    with pytest.raises(RuntimeError, match="broken"):
        await fails
    assert await bench.pages.get("/b", bench.prepare) == b"2"


async def test_closing_ends_the_pages_in_progress(bench: Bench) -> None:
    request = asyncio.create_task(bench.pages.get("/a", bench.prepare))
    await asyncio.sleep(0)
    await bench.pages.close()
    with pytest.raises(asyncio.CancelledError):
        await request
