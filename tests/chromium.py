"""Pages in a headless browser: Chromium of Debian (`apt-get install chromium`)."""

from pathlib import Path

import pytest

from tools.chromium import CHROMIUM, run_chromium, take_screenshot

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")


def page_after_scripts(profile: Path, address: str, *options: str, milliseconds: int = 3_000) -> str:
    """The document after its scripts have run.

    milliseconds: of the browser's virtual time, which stands still while scripts run and files are read.
    """
    return run_chromium(profile, address, "--dump-dom", f"--virtual-time-budget={milliseconds}", *options)


def picture(
    profile: Path, address: str, to: Path, *, width: int = 1280, height: int = 1000, dark: bool = False
) -> bytes:
    """A screenshot as PNG, written to a file."""
    take_screenshot(profile, address, to, width=width, height=height, dark=dark)
    return to.read_bytes()
