"""Provoke every alert: python -m tests.alerts [NAME ...] [--divisor 20] [--at-once 6]; NAME is a part of its name.

Prometheus and Alertmanager are fetched from Debian (tools/fetch_prometheus.sh). All durations of rules and routes are
divided by one number, those of two alerts by a smaller one; times inside a node are not scaled.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from tests.alerts import of_the_datagrams, of_the_input, of_the_node, of_the_output
from tests.alerts.monitoring import FILES, Monitoring
from tests.alerts.recording import RECORDED, Recording
from tests.alerts.scaled import seconds
from tests.alerts.scenarios import SCENARIOS, Scenario
from tests.alerts.site import ROOT, Site
from tests.soak.nodes import can_mount

PARTS = (of_the_node, of_the_input, of_the_datagrams, of_the_output)
"""Modules that register the scenarios when they are imported."""

LOOK_SECONDS = 0.5
# Time before the fault in which a node that has just started must not raise an alert.
QUIET_SECONDS = 6.0
# Allowance for the load of the machine, one scrape, one evaluation, and a grouped notification.
SLACK_SECONDS = 20.0
# Further alerts would follow within this time: the longest `for` except that of kept runs, scaled.
CONSEQUENCES_SECONDS = 20.0
# An alert must stand while its fault is held, for this time of Prometheus.
HELD_MINUTES = 10.0
SILENCE_SECONDS = 45.0
# An alert must fire if all scrapes of this time have succeeded: longer than the `for` of critical alerts, scaled.
SCRAPED_SECONDS = 8
# The longest window of a rule, 15 minutes of which HltnodeRestartLoop keeps a fifth, and two groups of notifications.
CLEAR_SECONDS = 240.0


@dataclass(slots=True)
class Outcome:
    """Result of one scenario; `problem` is empty for the expected result."""

    scenario: Scenario
    fired_after: float | None = None
    cleared_after: float | None = None
    others: set[str] = field(default_factory=set)
    held_back: set[str] = field(default_factory=set)
    problem: str = ""


def longest_seconds(alert: str) -> float:
    """The maximum delay of the rule: its `for` and five minutes of a window."""
    groups = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"]
    [rule] = [rule for group in groups for rule in group["rules"] if rule["alert"] == alert]
    return seconds(rule.get("for", "0s")) + seconds("5m")


class Observation:
    """The firing alerts of a node, and the notified receivers."""

    def __init__(self, monitoring: Monitoring, site: Site) -> None:
        self._monitoring = monitoring
        self._site = site
        self.fired: set[str] = set()

    async def firing(self) -> set[str]:
        """The alerts that fire now."""
        found = await asyncio.to_thread(self._monitoring.firing, self._site.names)
        self.fired |= found
        return found

    async def watch(self, duration: float) -> None:
        """Record firing alerts for some time."""
        end = time.monotonic() + duration
        while time.monotonic() < end:
            await self.firing()
            await asyncio.sleep(LOOK_SECONDS)

    async def lapse(self, alert: str, duration: float) -> float | None:
        """Seconds until a firing alert no longer fires; None if it stands for the whole time.

        Scrapes that a busy machine does not answer within their second interrupt the series of a node, not its fault.
        """
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < duration:
            if alert not in await self.firing() and await asyncio.to_thread(
                self._monitoring.is_scraped, self._site.instance, SCRAPED_SECONDS
            ):
                return passed
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def until(
        self, alert: str, *, fires: bool, limit: float, after: asyncio.Future[None] | None = None
    ) -> float | None:
        """Seconds until the alert fires, or until no alert fires; None after the time limit.

        after: the limit begins when this has ended, such as the starts of a node, which take long on a busy machine.
        """
        begin = limited_from = time.monotonic()
        while time.monotonic() - limited_from < limit:
            found = await self.firing()
            if alert in found if fires else not found:
                return time.monotonic() - begin
            if after is not None and not after.done():
                limited_from = time.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
        return None


async def provoke(
    scenario: Scenario, site: Site, monitoring: Monitoring, divisor: int, recording: Recording | None
) -> Outcome:
    """Run a scenario; the outcome names deviations."""
    outcome = Outcome(scenario)
    seen = Observation(monitoring, site)
    steps = scenario.steps(site)
    await anext(steps)
    monitoring.scrape(site.instance)
    begin = time.monotonic()
    await seen.watch(QUIET_SECONDS)
    # A node that has not started does not answer.
    before = seen.fired - ({"HltnodeNodeDown"} if site.process is None else set())
    if before:
        outcome.problem = f"before: {', '.join(sorted(before))}"
    faulty = time.monotonic()
    provoked = asyncio.ensure_future(anext(steps))
    if scenario.alert is None:
        await provoked
        await seen.watch(SILENCE_SECONDS)
    else:
        limit = longest_seconds(scenario.alert) / divisor + scenario.detection + SLACK_SECONDS
        outcome.fired_after = await seen.until(scenario.alert, fires=True, limit=limit, after=provoked)
        await provoked
        if outcome.fired_after is None:
            outcome.problem = f"does not fire within {limit:.0f} s"
        else:
            lapse = await seen.lapse(scenario.alert, max(HELD_MINUTES * 60 / divisor, scenario.held))
            if lapse is not None:
                outcome.problem = f"ends {lapse:.0f} s later, while the fault is held"
        await seen.watch(CONSEQUENCES_SECONDS)
        if recording is not None and not outcome.problem:
            await asyncio.to_thread(recording.take, scenario, site.instance, begin, faulty)
    await anext(steps, None)
    if scenario.alert is not None:
        outcome.cleared_after = await seen.until(scenario.alert, fires=False, limit=CLEAR_SECONDS)
        if outcome.cleared_after is None:
            outcome.problem = outcome.problem or f"does not clear: {', '.join(sorted(await seen.firing()))}"
    told = monitoring.receivers.told(site.names, begin)
    outcome.others = told - {scenario.alert}
    outcome.held_back = seen.fired - told - {scenario.alert}
    unexpected = outcome.others - set(scenario.tolerated)
    if site.process is not None and scenario.how.startswith("a back end that does not answer"):
        unexpected -= {"HltnodeNodeDown"}
    if unexpected:
        outcome.problem = outcome.problem or f"also: {', '.join(sorted(unexpected))}"
    info = scenario.alert == "HltnodeRunKept"
    if scenario.alert is not None and outcome.fired_after is not None and (scenario.alert in told) is info:
        outcome.problem = outcome.problem or ("a receiver was notified" if info else "no receiver was notified")
    return outcome


async def run_one(
    number: int,
    scenario: Scenario,
    root: Path,
    monitoring: Monitoring,
    divisor: int,
    places: asyncio.Semaphore,
    recording: Recording | None,
) -> Outcome:
    """Run a scenario on its own node."""
    async with places:
        site = Site(root / f"{number:02}", scenario.settings, events=scenario.events)
        try:
            outcome = await provoke(scenario, site, monitoring, divisor, recording)
        except Exception as error:
            traceback.print_exception(error)
            outcome = Outcome(scenario, problem=f"{type(error).__name__}: {error}")
        finally:
            monitoring.forget(site.instance)
            await site.close()
        verdict = outcome.problem or "ok"
        print(f"{scenario.alert or 'nothing'}: {scenario.how}: {verdict}", flush=True)
        return outcome


async def run(
    scenarios: list[Scenario],
    root: Path,
    monitoring: Monitoring,
    divisor: int,
    at_once: int,
    recording: Recording | None,
) -> list[Outcome]:
    """Run all scenarios, a few at a time."""
    places = asyncio.Semaphore(at_once)
    runs = [
        run_one(number, scenario, root, monitoring, divisor, places, recording)
        for number, scenario in enumerate(scenarios)
    ]
    return list(await asyncio.gather(*runs))


def table_of(outcomes: list[Outcome]) -> Table:
    """The report."""
    table = Table("alert", "provoked by", "s to fire", "others that notify", "held back", "s to clear", "")
    for outcome in sorted(outcomes, key=lambda each: each.scenario.alert or "~"):
        numbers = ["" if value is None else f"{value:.1f}" for value in (outcome.fired_after, outcome.cleared_after)]
        table.add_row(
            outcome.scenario.alert or "none may fire",
            outcome.scenario.how,
            numbers[0],
            ", ".join(sorted(outcome.others)),
            ", ".join(sorted(outcome.held_back)),
            numbers[1],
            outcome.problem or "ok",
        )
    return table


def main() -> int:
    """Provoke the requested alerts; returns 1 if one deviates from its expectation."""
    parser = argparse.ArgumentParser(prog="python -m tests.alerts", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--divisor", type=int, default=20, help="divisor of all durations of rules and routes")
    parser.add_argument("--at-once", type=int, default=6, help="nodes at a time")
    parser.add_argument("--record", action="store_true", help=f"write the series of the faults to {RECORDED.name}")
    chosen = parser.parse_args()
    script = ROOT / "tools" / "fetch_prometheus.sh"
    programs = Path(subprocess.run([script], check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip())
    for name in ("prometheus", "prometheus-alertmanager"):
        asked = subprocess.run([programs / name, "--version"], check=True, capture_output=True, text=True)
        print((asked.stdout + asked.stderr).splitlines()[0])
    with tempfile.TemporaryDirectory(prefix="hltnode-alerts-") as folder:
        root = Path(folder)
        mounts = can_mount(root)
        wanted = [
            each
            for each in SCENARIOS
            if not chosen.names or any(name in f"{each.alert} {each.steps.__name__}" for name in chosen.names)
        ]
        left_out = [each for each in wanted if each.needs_mount and not mounts]
        for each in left_out:
            print(f"left out, needs root to mount a tmpfs: {each.alert} by {each.how}")
        wanted = [each for each in wanted if each not in left_out]
        (root / "prometheus").mkdir()
        monitoring = Monitoring(root / "prometheus", programs, chosen.divisor)
        begin = time.monotonic()
        recording = Recording(monitoring) if chosen.record else None
        try:
            outcomes = asyncio.run(run(wanted, root, monitoring, chosen.divisor, chosen.at_once, recording))
        finally:
            monitoring.close()
    Console(width=200).print(table_of(outcomes))
    bad = [outcome for outcome in outcomes if outcome.problem]
    print(
        f"{len(outcomes) - len(bad)} of {len(outcomes)} as they should be, in {time.monotonic() - begin:.0f} s; "
        f"durations of rules and routes divided by {chosen.divisor}, load of the machine {os.getloadavg()[0]:.1f}"
    )
    return 1 if bad or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
