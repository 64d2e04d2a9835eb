"""Prometheus and Alertmanager as processes, with the scaled files of deploy/prometheus, and their notifications."""

import http.server
import json
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hltnode.daemon.commands.demo_processes import free_ports
from tests.alerts.scaled import scaled

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "deploy" / "prometheus"
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification: one alert of one node or file system at a receiver."""

    at: float
    receiver: str
    alert: str
    instance: str
    status: str


def name_of(labels: dict[str, str]) -> str:
    """The node of an alert, or the file system."""
    return labels.get("instance") or labels["filesystem"]


class Receivers:
    """The webhooks of the pager and the chat."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []
        receivers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                now = time.monotonic()
                for alert in body["alerts"]:
                    labels = alert["labels"]
                    note = Notification(now, self.path[1:], labels["alertname"], name_of(labels), alert["status"])
                    receivers.notifications.append(note)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                """Log nothing: the report has the results."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def told(self, names: set[str], since: float) -> set[str]:
        """The alerts of a node in notifications since a time."""
        return {
            note.alert
            for note in list(self.notifications)
            if note.instance in names and note.at >= since and note.status == "firing"
        }

    def close(self) -> None:
        """Stop the receivers."""
        self._server.shutdown()
        self._server.server_close()


def _with_templates(programs: Path) -> list[str]:
    """Debian's Alertmanager reads templates from /usr/share; if it is not installed, mount its own templates there."""
    share = programs.parent / "share"
    if Path("/usr/share/prometheus/alertmanager/default.tmpl").exists() or not share.is_dir():
        return []
    mount = f"mount -t overlay overlay -o lowerdir={share}:/usr/share /usr/share"
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]


class Monitoring:
    """Both processes and the receivers, from construction to `close`.

    Args:
        programs: folder of the programs.
        divisor: all durations are divided by it.
    """

    def __init__(self, directory: Path, programs: Path, divisor: int) -> None:
        self._directory = directory
        self._targets: set[str] = set()
        self.receivers = Receivers()
        prometheus, alertmanager, cluster = free_ports(3)
        self.url = f"http://127.0.0.1:{prometheus}"
        self._write_files(divisor, alertmanager)
        self._pages = (f"{self.url}/-/ready", f"http://127.0.0.1:{alertmanager}/-/ready")
        self._processes = [
            self._start(
                *_with_templates(programs),
                programs / "prometheus-alertmanager",
                f"--config.file={directory / 'alertmanager.yml'}",
                f"--storage.path={directory / 'alertmanager'}",
                f"--web.listen-address=127.0.0.1:{alertmanager}",
                f"--cluster.listen-address=127.0.0.1:{cluster}",
            ),
            self._start(
                programs / "prometheus",
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{prometheus}",
                "--rules.alert.resend-delay=1s",
            ),
        ]
        end = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if time.monotonic() > end:
                self.close()
                logs = "\n".join(path.read_text()[-1500:] for path in sorted(directory.glob("*.log")))
                raise RuntimeError(f"Prometheus or Alertmanager does not start:\n{logs}")
            time.sleep(0.2)

    def _write_files(self, divisor: int, alertmanager: int) -> None:
        directory = self._directory
        for name in ("recording.yml", "alerts.yml", "alertmanager.yml"):
            text = scaled((FILES / name).read_text(), divisor)
            (directory / name).write_text(
                re.sub(r"http://127\.0\.0\.1:\d+/", f"http://127.0.0.1:{self.receivers.port}/", text)
            )
        config = yaml.safe_load(scaled((FILES / "prometheus.yml").read_text(), divisor))
        # One second suffices for the shortest range; scaling would scrape nodes twenty times as often.
        config["global"]["scrape_interval"] = "1s"
        for job in config["scrape_configs"]:
            job["scrape_timeout"] = "1s"
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        (directory / "alertmanagers").mkdir()
        self._write_targets(directory / "alertmanagers" / "local.yml", {f"127.0.0.1:{alertmanager}"})
        (directory / "targets").mkdir()
        self._write_targets(directory / "targets" / "nodes.yml", set())

    def _write_targets(self, path: Path, targets: set[str]) -> None:
        # Prometheus must not read an incomplete file.
        temporary = path.with_suffix(".tmp")
        temporary.write_text(yaml.safe_dump([{"targets": sorted(targets)}]))
        temporary.rename(path)

    def _start(self, *command: str | Path) -> subprocess.Popen[bytes]:
        [program] = [part for part in command if isinstance(part, Path)]
        with (self._directory / f"{program.name}.log").open("wb") as log:
            return subprocess.Popen([str(part) for part in command], stdout=log, stderr=log)

    def _is_ready(self) -> bool:
        try:
            for page in self._pages:
                urllib.request.urlopen(page, timeout=1).close()
        except OSError:
            return False
        return True

    def scrape(self, instance: str) -> None:
        """Scrape a node from now on."""
        self._targets.add(instance)
        self._write_targets(self._directory / "targets" / "nodes.yml", self._targets)

    def forget(self, instance: str) -> None:
        """Stop scraping a node."""
        self._targets.discard(instance)
        self._write_targets(self._directory / "targets" / "nodes.yml", self._targets)

    def get(self, path: str) -> Any:
        """The data of an answer of Prometheus' API."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=20) as answer:
            return json.load(answer)["data"]

    def firing(self, names: set[str]) -> set[str]:
        """Alerts of a node that fire in Prometheus, including those that Alertmanager inhibits."""
        alerts = self.get("alerts")["alerts"]
        return {
            alert["labels"]["alertname"]
            for alert in alerts
            if alert["state"] == "firing" and name_of(alert["labels"]) in names
        }

    def is_scraped(self, instance: str, seconds: int) -> bool:
        """Whether all scrapes of a node in the last seconds have succeeded."""
        query = f'min_over_time(up{{instance="{instance}"}}[{seconds}s])'
        found = self.get(f"query?query={urllib.parse.quote(query)}")["result"]
        return all(float(each["value"][1]) == 1 for each in found)

    def samples(self, instance: str, metrics: set[str], seconds: float) -> list[dict[str, Any]]:
        """The scraped samples of some metrics of a node: `metric` with the labels, `values` of time and text."""
        query = f'{{instance="{instance}", __name__=~"{"|".join(sorted(metrics))}"}}[{seconds:.0f}s]'
        found: list[dict[str, Any]] = self.get(f"query?query={urllib.parse.quote(query)}")["result"]
        return found

    def close(self) -> None:
        """End both processes."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()
        self.receivers.close()
