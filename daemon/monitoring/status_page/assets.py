"""Style, scripts and Content-Security-Policy of the pages for people."""

import base64
import hashlib
from pathlib import Path

HTML_TYPE = "text/html; charset=utf-8"
TEMPLATES = Path(__file__).parent / "templates"
STYLE = (TEMPLATES / "status.css").read_text()
REFRESH_SCRIPT = (TEMPLATES / "refresh.js").read_text()
STATUS_SCRIPT = REFRESH_SCRIPT + (TEMPLATES / "control.js").read_text()
# Period of a page without its script.
RELOAD_SECONDS = 5


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(STATUS_SCRIPT)} {_hash(REFRESH_SCRIPT)}; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The browser uses only the scripts and the style of these pages, even if the content contains others."""
