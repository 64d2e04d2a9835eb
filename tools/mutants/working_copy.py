"""A copy of the repository with an environment of its own, in which changes are made, built and tested."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.change_list import Change

MARKS = "not slow and not gpu"
"""The tests that CI runs."""
LIMIT_S = 1800.0
"""A run of tests is ended after this time. A single test that hangs fails earlier, by the timeout of pytest."""
_NO_TEST_RAN = 5
_PASSED = re.compile(r"\b[1-9]\d* passed\b")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class CopyError(Exception):
    """The copy cannot be made or built, or a test fails without the change, too."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of the tests of a change. `failed`: the first test that failed; `hung`: it was ended after its limit."""

    passed: bool
    hung: bool
    failed: str
    seconds: float
    output: str

    @property
    def failed_function(self) -> str:
        """The failed test without its parameters, which may contain blanks."""
        return self.failed.split("[")[0]


class WorkingCopy:
    """A clone of the committed state of `source`; an existing one is brought to that state.

    Raises CopyError.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = folder
        ccache = shutil.which("ccache")
        self._environment = {
            "HLTNODE_SHARED": str(source.parent / "shared"),
            **({"CMAKE_CXX_COMPILER_LAUNCHER": ccache, "CCACHE_BASEDIR": str(folder)} if ccache else {}),
            **os.environ,
            "PYTHONPYCACHEPREFIX": str(folder / "build/pycache"),
        }
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if not (folder / ".git").is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            _require(_run(["git", "clone", "--quiet", str(source), str(folder)], folder.parent, self._environment))
        head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=source, text=True).strip()
        for command in (["fetch", "--quiet", str(source), head], ["reset", "--quiet", "--hard", head]):
            _require(_run(["git", *command], folder, self._environment))
        _require(_run(["make", ".venv/.developed"], folder, self._environment))
        self._is_prepared = False
        self._changed_ns = 0
        """Time of the last changed file; those of two changes differ by a second."""

    def try_out(self, change: Change) -> Trial | None:
        """Run the tests of a change with it, up to the first that fails; None if it does not build."""
        if change.is_native and not self._is_prepared:
            # The first build of a copy compiles everything once more; changes of Python do not wait for it.
            self._build()
            self._is_prepared = True
        with self._changed(change):
            if change.is_native and not self._built():
                return None
            return self._test((*change.selection, "-x"))

    def failing_without_change(self, trials: Mapping[str, Trial]) -> dict[str, str]:
        """The changes by name whose test fails without a change, too, with the output of pytest.

        The tests of several trials are run at once, and no others: the start of pytest takes longer than most tests.
        """
        failures = {name: trial.failed_function for name, trial in trials.items() if trial.failed}
        if not failures:
            return {}
        run = self._test(tuple(sorted(set(failures.values()))))
        if run.passed:
            return {}
        failed = _FAILED.findall(run.output)
        return {
            name: run.output[-3000:]
            for name, function in failures.items()
            if not failed or any(each.startswith(function) for each in failed)
        }

    @contextmanager
    def _changed(self, change: Change) -> Iterator[None]:
        path = self.folder / change.file
        content, status = path.read_bytes(), path.stat()
        change.apply(self.folder)
        if not change.is_native:
            # Byte code is valid for a time in seconds and a size, which a change may leave as it was.
            self._changed_ns = max(time.time_ns(), status.st_mtime_ns, self._changed_ns) + 1_000_000_000
            os.utime(path, ns=(status.st_atime_ns, self._changed_ns))
        try:
            yield
        finally:
            path.write_bytes(content)
            if change.is_native:
                self._build()
            else:
                # The byte code of the unchanged file is valid again.
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _build(self) -> None:
        if not self._built():
            raise CopyError(f"{self.folder}: the unchanged sources do not build")

    def _built(self) -> bool:
        """Compile what changed, and install it where the editable package is."""
        cmake = str(self.folder / ".venv/bin/cmake")
        (build,) = (path.parent for path in (self.folder / "build").glob("*/CMakeCache.txt"))
        packages = sysconfig.get_path("platlib", "venv", {"platbase": str(self.folder / ".venv")})
        for command in ([cmake, "--build", str(build)], [cmake, "--install", str(build), "--prefix", packages]):
            if _run(command, self.folder, self._environment).returncode:
                return False
        return True

    def _test(self, selection: tuple[str, ...]) -> Trial:
        command = [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", MARKS]
        command += ["--hypothesis-profile", "make-test", *selection]
        begin = time.monotonic()
        # A group of its own, so that processes which tests have started end with it.
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        hung = False
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            hung = True
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        if process.returncode == _NO_TEST_RAN or (process.returncode == 0 and not _PASSED.search(output)):
            raise CopyError(f"{' '.join(selection)}: no test ran:\n{output[-2000:]}")
        failed = _FAILED.search(output)
        seconds = time.monotonic() - begin
        return Trial(process.returncode == 0, hung, failed[1] if failed else "", round(seconds, 1), output)


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)


def _require(run: subprocess.CompletedProcess[str]) -> None:
    if run.returncode:
        raise CopyError(f"{' '.join(run.args)}: {(run.stdout + run.stderr)[-2000:]}")
