"""Takes the pictures of the documentation from running software, into docs/images: `make pictures`.

Two nodes with the CPU back end take simulated events; a third address of their farm does not answer. Chromium
photographs their pages, an event display and the reports; the terminal picture is the output of `hltnode top`.
docs/gallery.md shows all of them.
"""

import argparse
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from hltnode.daemon.commands.demo_processes import free_ports
from tools.chromium import take_screenshot

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
HLTNODE = str(Path(sys.executable).with_name("hltnode"))
MAX_BYTES = 150_000
"""Largest file of a picture: the repository and the site keep all of them."""
WIDTH = 1280
START_SECONDS = 180.0
BROWSER_SECONDS = 300.0
"""A report of several megabytes takes two seconds, on a machine with other work much longer."""
EVENT_RATE = 40
"""Events per second to each node; a core of a laptop computes some 300."""
TERMINAL_COLUMNS = 110
TOP_TRIES = 5
TERMINAL_PAGE = """<!doctype html><meta charset="utf-8">
<body style="margin:0;background:{background};color:{foreground}">
<pre style="margin:18px;font:15px/1.35 'DejaVu Sans Mono',monospace">{code}</pre>"""
SAMPLES = {
    "minbias": (("--sample", "minbias"), 1),
    "jpsi": (("--sample", "jpsi"), 1),
    # Rates need more events than the other reports.
    "enriched": (("--enrich",), 10),
    # Other detectors; one event is drawn.
    "tpc": (("--chain", "alice_tpc"), 0.01),
    "telescope": (("--chain", "km3net", "--muon-rate", "40000"), 0.02),
    "rich": (("--chain", "na62_rich", "--decay", "3pi"), 0.02),
}
"""Options of the samples, and how many times as many events they have as asked for."""
NODE_TOML = """
[node]
name = "{name}"

[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"

[builder]
mep_timeout_ms = 5000
overtaken_after_ms = 5000
evict_after_ms = 5000

[pipeline]
backend = "cpu"
threads = 1
slot_bytes = 67_108_864
max_events = 1024

[output]
directory = "output-{name}"

[http]
port = {http}
event_picture_s = 2.0
farm_nodes = {farm}
"""


@dataclass(frozen=True, slots=True)
class Site:
    """What runs while the pictures are taken: the folder of all files, and the HTTP addresses of the farm."""

    folder: Path
    farm: Sequence[str]

    def hltnode(self, *arguments: str, makes: str) -> None:
        """Run a command in the folder, unless the file that it makes is there. Raises subprocess.CalledProcessError."""
        if (self.folder / makes).exists():
            return
        subprocess.run([HLTNODE, *arguments], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def photograph(self, address: str, name: str, height: int, script_ms: int = 3000) -> Path:
        """A picture of a page in light colours."""
        raw = self.folder / f"{name}.png"
        take_screenshot(
            self.folder / "profile",
            address,
            raw,
            width=WIDTH,
            height=height,
            script_ms=script_ms,
            seconds=BROWSER_SECONDS,
        )
        return raw


def status_page(site: Site, name: str) -> Path:
    """The status page of a node that has run for a while."""
    # The node draws an accepted event only while its page is read.
    await_page(f"{site.farm[0]}/", "An accepted event")
    return site.photograph(f"{site.farm[0]}/", name, 1500, script_ms=0)


def farm_page(site: Site, name: str) -> Path:
    """The farm page: two nodes at work, and one that does not answer."""
    await_page(f"{site.farm[0]}/farm", "does not answer", "2 of 3 nodes")
    return site.photograph(f"{site.farm[0]}/farm", name, 460, script_ms=0)


def top(site: Site, name: str) -> Path:
    """`hltnode top` on the terminal."""
    command = ["top", "--once", *site.farm]
    # On a busy machine a node may not answer in time: such a picture would show another farm than that of the page.
    for _ in range(TOP_TRIES):
        output = output_on_terminal([HLTNODE, *command], TERMINAL_COLUMNS)
        if "2 of 3 nodes answer" in output:
            break
    else:
        raise RuntimeError(f"hltnode top does not show two nodes that answer: {output}")
    page = site.folder / "top.html"
    page.write_text(terminal_page(f"$ hltnode {' '.join(command)}\n{output}", TERMINAL_COLUMNS), encoding="utf-8")
    return site.photograph(page.as_uri(), name, 600)


def display_of(sample: str, event: int, height: int, *options: str) -> Callable[[Site, str], Path]:
    """An event of a sample in the event display, with further options of the command."""

    def take(site: Site, name: str) -> Path:
        page = f"{name}.html"
        site.hltnode("display", f"{sample}.mdf", "--event", str(event), *options, "-o", page, makes=page)
        return site.photograph((site.folder / page).as_uri(), name, height)

    return take


def report_of(command: str, sample: str, height: int) -> Callable[[Site, str], Path]:
    """The beginning of the HTML report of a command."""

    def take(site: Site, name: str) -> Path:
        page = f"{name}.html"
        site.hltnode(command, f"{sample}.mdf", "--report", page, makes=page)
        return site.photograph((site.folder / page).as_uri(), name, height)

    return take


PICTURES: Mapping[str, Callable[[Site, str], Path]] = {
    "event-display": display_of("jpsi", 2, 1000),
    "display-tpc": display_of("tpc", 0, 900, "--chain", "alice_tpc", "--slice", "4"),
    "display-telescope": display_of("telescope", 5, 900, "--chain", "km3net"),
    "display-rich": display_of("rich", 0, 900, "--chain", "na62_rich"),
    "report-validate": report_of("validate", "minbias", height=1300),
    "report-rates": report_of("rates", "enriched", height=1300),
    "report-efficiency": report_of("efficiency", "jpsi", height=1300),
    "farm-page": farm_page,
    "top": top,
    "status-page": status_page,
}
"""The pictures by the names of their files; those that need no node are first, while the nodes collect a past."""
OF_NODES = {"farm-page", "top", "status-page"}
SAMPLE_OF = {
    "event-display": "jpsi",
    "report-efficiency": "jpsi",
    "report-rates": "enriched",
    "display-tpc": "tpc",
    "display-telescope": "telescope",
    "display-rich": "rich",
}
"""The sample of a picture; the nodes and the other pictures take `minbias`."""


def main() -> None:
    """Take all pictures, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], help="pictures, without .png; all by default")
    parser.add_argument("--seconds", type=float, default=300.0, help="time for which the nodes take data before")
    parser.add_argument("--events", type=int, default=500, help="events of a sample")
    parser.add_argument("--to", type=Path, default=IMAGES, help="folder of the pictures")
    parser.add_argument(
        "--folder", type=Path, help="keep samples and reports in this folder, and use those that are there"
    )
    options = parser.parse_args()
    names = [name for name in PICTURES if name in (options.names or PICTURES)]
    options.to.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = (options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for sample in sorted({SAMPLE_OF.get(name, "minbias") for name in names}):
            kind, times = SAMPLES[sample]
            n = max(1, round(times * options.events))
            print(f"{n} simulated events of {sample} ...", flush=True)
            make = ("simulate", "-n", str(n), *kind, "--jobs", "0", "-o", f"{sample}.mdf")
            Site(folder, ()).hltnode(*make, makes=f"{sample}.mdf")
        site = Site(folder, stack.enter_context(running_farm(folder)) if OF_NODES & set(names) else ())
        begin = time.monotonic()
        for name in names:
            if name in OF_NODES:
                time.sleep(max(0.0, begin + options.seconds - time.monotonic()))
            size = write_small(PICTURES[name](site, name), options.to / f"{name}.png")
            print(f"{name}.png: {size} bytes", flush=True)


@contextmanager
def running_farm(folder: Path) -> Iterator[Sequence[str]]:
    """Two nodes that take events, and the HTTP addresses of their farm; the last one does not answer."""
    ports = free_ports(9)
    farm = [f"http://127.0.0.1:{port}" for port in ports[:3]]
    with ExitStack() as stack:
        for number in range(2):
            name = f"farm-{number + 1}"
            data, control, decisions = ports[3 + 3 * number : 6 + 3 * number]
            text = NODE_TOML.format(
                name=name, data=data, control=control, decisions=decisions, http=ports[number], farm=farm
            )
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
            stack.enter_context(running(folder, "serve", "--config", f"{name}.toml"))
            await_page(f"{farm[number]}/status", '"state"')
            to = ["--to", f"tcp://127.0.0.1:{data}", "--control", f"tcp://127.0.0.1:{control}"]
            how = ["--loop", "--rate", str(EVENT_RATE), "--sources", "4", "--events-per-mep", "20", "--run", "4711"]
            stack.enter_context(running(folder, "replay", "minbias.mdf", *to, *how))
            await_page(f"{farm[number]}/status", '"running"', '"run": 4711')
        yield farm


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[None]:
    """A command that runs meanwhile, and is then ended by SIGTERM; its output is in a file."""
    with (folder / f"{arguments[0]}-{time.monotonic_ns()}.log").open("w") as log:
        process = subprocess.Popen([HLTNODE, *arguments], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
            if (code := process.poll()) is not None:
                raise RuntimeError(
                    f"hltnode {arguments[0]} has ended with {code}: {Path(log.name).read_text()[-2000:]}"
                )
        finally:
            process.terminate()
            process.wait()


def await_page(address: str, *words: str) -> None:
    """Read a page until it has these words. Raises TimeoutError, with the page."""
    end = time.monotonic() + START_SECONDS
    page = ""
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                page = answer.read().decode()
        except OSError:
            page = ""
        if all(word in page for word in words):
            return
        time.sleep(0.5)
    raise TimeoutError(f"{address} lacks {words} after {START_SECONDS:.0f} s: {page[:1000]}")


def output_on_terminal(command: Sequence[str], columns: int) -> str:
    """What a command writes to a terminal of this width, with its colours."""
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    with subprocess.Popen(command, stdout=terminal, stdin=terminal, env=environment):
        os.close(terminal)
        parts = []
        # The end of the last process of a terminal is an error of a read.
        while part := _read(ours):
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def terminal_page(output: str, columns: int) -> str:
    """A page that looks like a terminal with this output; escape sequences are colours."""
    console = Console(record=True, width=columns, file=io.StringIO(), emoji=False, markup=False, highlight=False)
    console.print(Text.from_ansi(output))
    return console.export_html(theme=SVG_EXPORT_THEME, code_format=TERMINAL_PAGE, inline_styles=True)


def write_small(raw: Path, to: Path) -> int:
    """Write a picture with a palette, of as many colours as fit into the largest size; returns the size in bytes.

    Raises ValueError for a picture that does not fit.
    """
    with Image.open(raw) as picture:
        colours = picture.convert("RGB")
    for n in (256, 128, 64, 32, 16):
        content = io.BytesIO()
        colours.quantize(n, dither=Image.Dither.NONE).save(content, "PNG", optimize=True)
        if len(content.getvalue()) < MAX_BYTES:
            return to.write_bytes(content.getvalue())
    raise ValueError(f"{to.name}: {len(content.getvalue())} bytes with {n} colours; the limit is {MAX_BYTES}")


if __name__ == "__main__":
    main()
