"""Runs the notebooks of examples/notebooks from the first cell to the last, and keeps what they show in their files.

A node runs meanwhile, with simulated events that come again and again: the one that a notebook watches.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
HLTNODE = Path(sys.executable).with_name("hltnode")
CONFIGURATION = """
[output]
directory = "output"
"""
NODE = "http://127.0.0.1:9105"
START_SECONDS = 120.0
CELL_SECONDS = 1800


def main() -> None:
    """Run all notebooks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser.add_argument("names", nargs="*", choices=[[], *known], help="notebooks, without .ipynb; all by default")
    names = parser.parse_args().names or known
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if "live_histograms" in names:
            stack.enter_context(node_with_data(Path(folder)))
        for name in names:
            print(f"{name} …", flush=True)
            run(FOLDER / f"{name}.ipynb", Path(folder))


def run(path: Path, folder: Path) -> None:
    """Execute a notebook in a folder, and write it with its output. Raises nbclient's error of a cell that fails."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    # The version of Python that ran it last is of no interest in the history.
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)


@contextmanager
def node_with_data(folder: Path) -> Iterator[None]:
    """A node of default ports, to which simulated events are sent until the end."""
    (folder / "node.toml").write_text(CONFIGURATION, encoding="utf-8")
    sample = folder / "of_the_node.mdf"
    subprocess.run([HLTNODE, "simulate", "-n", "500", "-o", sample], check=True, stdout=subprocess.DEVNULL)
    serve = [str(HLTNODE), "serve", "--config", "node.toml"]
    replay = [str(HLTNODE), "replay", str(sample), "--to", "tcp://127.0.0.1:5555", "--loop", "--rate", "200"]
    with ExitStack() as stack:
        for command in (serve, replay):
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            await_node()
        yield


def await_node() -> None:
    """Wait until the node answers. Raises TimeoutError."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{NODE}/histograms", timeout=10):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    raise TimeoutError(f"{NODE} did not answer for {START_SECONDS:.0f} s")


if __name__ == "__main__":
    main()
