"""Debian's Chromium without a window (`apt-get install chromium`): documents after their scripts, and screenshots."""

import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium")
SECONDS = 50.0
_FIXED = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


def run_chromium(profile: Path, address: str, *options: str, seconds: float = SECONDS) -> str:
    """Open an address; returns the standard output. Raises subprocess.SubprocessError.

    profile: folder of the browser's own files. seconds: longest time.
    """
    if CHROMIUM is None:
        raise FileNotFoundError("chromium is not installed: apt-get install chromium")
    command = [CHROMIUM, *_FIXED, f"--user-data-dir={profile}", *options, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True).stdout


def take_screenshot(
    profile: Path,
    address: str,
    to: Path,
    *,
    width: int,
    height: int,
    dark: bool = False,
    script_ms: int = 3000,
    seconds: float = SECONDS,
) -> None:
    """Write a PNG of a page, of `width` times `height` pixels.

    script_ms: time that passes for the scripts of the page before the picture; 0 takes it when the page is loaded.
    """
    options = [f"--window-size={width},{height}", f"--screenshot={to}"]
    # 0 is dark, 1 is light.
    options.append(f"--blink-settings=preferredColorScheme={0 if dark else 1}")
    if script_ms:
        options.append(f"--virtual-time-budget={script_ms}")
    run_chromium(profile, address, *options, seconds=seconds)
