"""hltnode top: the state of one or several nodes, on the terminal."""

import json as json_module
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from hltnode.daemon.commands.common import fail
from hltnode.daemon.commands.node.keyboard import Keyboard
from hltnode.daemon.commands.node.node_pages import NodeUnreachableError, Pages, describe, read_pages
from hltnode.daemon.commands.node.top_screen import View, screen
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.commands.text_console import TextConsole

DEFAULT_URL = "http://127.0.0.1:9105"
# Time between the two readings of --once, for its rates.
ONCE_SECONDS = 1.0


def top(
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL]...", help=f"HTTP addresses of nodes (http.port); default: {DEFAULT_URL}."),
    ] = None,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two readings.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print one screen, with the rates of one second.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Like --once, as JSON on standard output.")] = False,
) -> None:
    """Show nodes until q or Ctrl-C: state, run, rates, slots, dead time, missing and lagging sources, lines.

    A node that does not answer has a red row. Keys: s and r sort the rows, the arrows select a node, ? shows all keys.
    The exit code is 2 if no node answers at the start, within three seconds. With --once or --json it is 1 if some do
    not answer.

    Example: hltnode top http://farm1:9105 http://farm2:9105
    """
    watched = Watched(urls or [DEFAULT_URL])
    watched.read()
    if not any(watched.latest.values()):
        fail("\n".join(watched.errors.values()))
    if once or json:
        time.sleep(ONCE_SECONDS)
        watched.read()
        if json:
            echo(json_module.dumps(watched.describe(), indent=1))
        else:
            TextConsole(emoji=False, markup=False).print(screen(watched.describe()))
        if watched.errors:
            raise typer.Exit(1)
        return
    console = TextConsole(emoji=False, markup=False)
    if console.is_terminal and sys.stdin.isatty():
        show_until_quit(watched, every, console)
    else:
        with Live(screen(watched.describe()), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                watched.read()
                live.update(screen(watched.describe()), refresh=True)


class Watched:
    """The nodes, with the last two readings of their pages."""

    def __init__(self, urls: list[str]) -> None:
        self.before: dict[str, Pages | None] = dict.fromkeys(urls)
        self.latest: dict[str, Pages | None] = dict.fromkeys(urls)
        self.errors: dict[str, str] = {}
        self._lost_since: dict[str, float] = {}

    def read(self) -> None:
        """Read the pages of all nodes concurrently."""
        self.take(self.collect())

    def collect(self) -> Mapping[str, Pages | str]:
        """The pages of all nodes, or the reasons of those that do not answer; any thread."""
        found: dict[str, Pages | str] = {}
        # The end of the process does not wait for these threads.
        threads = [
            threading.Thread(target=lambda url: found.update({url: _read(url)}), args=(url,), daemon=True)
            for url in self.latest
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def take(self, readings: Mapping[str, Pages | str]) -> None:
        """Make these readings the latest ones."""
        for url in self.latest:
            pages = readings[url]
            self.before[url] = self.latest[url]
            if isinstance(pages, Pages):
                self.latest[url] = pages
                self.errors.pop(url, None)
                self._lost_since.pop(url, None)
            else:
                self.latest[url] = None
                since = self._lost_since.setdefault(url, time.monotonic())
                seconds = time.monotonic() - since
                self.errors[url] = pages + (f" (for {seconds:.0f} s)" if seconds >= 1 else "")

    def describe(self) -> dict[str, dict[str, Any]]:
        """The shown values of each node, by address."""
        return {
            url: {"error": self.errors[url]} if pages is None else describe(self.before[url], pages)
            for url, pages in self.latest.items()
        }


def _read(url: str) -> Pages | str:
    try:
        return read_pages(url)
    except NodeUnreachableError as error:
        return str(error)


def show_until_quit(watched: Watched, every: float, console: Console) -> None:
    """Show the nodes on a terminal, and obey its keys, until q.

    The pages are read in a thread, so that a node that does not answer delays no key.
    """
    view = View(selected=next(iter(watched.latest)))
    wake_reader, wake_writer = os.pipe()
    nodes = watched.describe()
    arrived: list[Mapping[str, Pages | str]] = []

    def read() -> None:
        arrived.append(watched.collect())
        os.write(wake_writer, b".")

    with (
        Keyboard(sys.stdin.fileno()) as keyboard,
        Live(screen(nodes, view), console=console, screen=True, auto_refresh=False) as live,
    ):
        next_s = time.monotonic() + every
        is_reading = False
        while not view.wants_to_quit:
            if not is_reading and time.monotonic() >= next_s:
                next_s = time.monotonic() + every
                is_reading = True
                threading.Thread(target=read, daemon=True).start()
            wait_s = None if is_reading else max(0.0, next_s - time.monotonic())
            for key in keyboard.keys(wait_s, wake_reader):
                view.press(key, nodes)
            if arrived:
                os.read(wake_reader, 1)
                watched.take(arrived.pop())
                is_reading, nodes = False, watched.describe()
            live.update(screen(nodes, view), refresh=True)
