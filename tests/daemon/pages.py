"""The pages of a node in another process."""

import json
import urllib.error
import urllib.request
from typing import Any


def status_page(port: int, *, timeout: float = 10.0) -> dict[str, Any] | None:
    """What /status shows; None if the node does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=timeout) as page:
            status: dict[str, Any] = json.load(page)
            return status
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def all_metrics(port: int, *, timeout: float = 10.0) -> dict[str, float]:
    """The value of every series, named with its labels as /metrics writes it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout) as page:
        rows = [row.rsplit(" ", 1) for row in page.read().decode().splitlines() if not row.startswith("#")]
    return {series: float(value) for series, value in rows}


def metric(port: int, series: str) -> float:
    """The value of one series, named with its labels as /metrics writes it."""
    return all_metrics(port)[series]


def text_of(port: int, path: str) -> str:
    """The text of a page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10.0) as page:
        text: str = page.read().decode()
    return text
