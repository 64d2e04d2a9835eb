"""Pages in a headless browser: Chromium of Debian (`apt-get install chromium`)."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")
_SECONDS = 50


def _run(profile: Path, address: str, *options: str) -> str:
    assert CHROMIUM is not None
    fixed = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
    command = [CHROMIUM, *fixed, f"--user-data-dir={profile}", *options, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    return done.stdout


def page_after_scripts(profile: Path, address: str, *options: str) -> str:
    """The document after its scripts have run."""
    return _run(profile, address, "--dump-dom", "--virtual-time-budget=3000", *options)


def picture(
    profile: Path, address: str, to: Path, *, width: int = 1280, height: int = 1000, dark: bool = False
) -> bytes:
    """A screenshot as PNG, written to a file."""
    options = ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    _run(
        profile,
        address,
        f"--window-size={width},{height}",
        f"--screenshot={to}",
        "--virtual-time-budget=3000",
        *options,
    )
    return to.read_bytes()
