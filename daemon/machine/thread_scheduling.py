"""CPUs and real-time priority of threads (sched_setaffinity(2), sched_setscheduler(2), Linux)."""

import errno
import os
from collections.abc import Callable, MutableMapping, Sequence

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.vocabulary import DecisionThread, ThreadSetting

log = get_logger("thread_scheduling")


class ThreadScheduling:
    """Sets the CPUs and the priority of threads that call `apply`.

    Args:
        cpus: the CPUs; None leaves them as they are.
        priority: real-time priority in SCHED_FIFO, 1 to 99; 0 leaves the class as it is.
        applied: gets, by thread and setting, whether the system took it.
    """

    def __init__(
        self,
        cpus: Sequence[int] | None,
        priority: int,
        applied: MutableMapping[tuple[DecisionThread, ThreadSetting], bool],
    ) -> None:
        self._cpus = cpus
        self._priority = priority
        self._applied = applied

    def apply(self, thread: DecisionThread) -> None:
        """Apply the settings to the calling thread. The system may refuse one: it is logged, and the thread runs
        without."""
        if self._cpus is not None:
            cpus = self._cpus
            self._set(thread, ThreadSetting.CPUS, "latency.cpus", lambda: os.sched_setaffinity(0, cpus))
        if self._priority:
            # A thread or process that this one starts later must not inherit the priority.
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            parameter = os.sched_param(self._priority)
            self._set(
                thread,
                ThreadSetting.REALTIME,
                "latency.realtime_priority",
                lambda: os.sched_setscheduler(0, policy, parameter),
            )

    def _set(self, thread: DecisionThread, setting: ThreadSetting, key: str, call: Callable[[], None]) -> None:
        try:
            call()
        except OSError as error:
            self._applied[thread, setting] = False
            log.warning("thread_setting_refused", thread=thread, key=key, error=_reason(error, setting))
        else:
            self._applied[thread, setting] = True


def _reason(error: OSError, setting: ThreadSetting) -> str:
    text = error.strerror or str(error)
    if error.errno == errno.EPERM and setting is ThreadSetting.REALTIME:
        return f"{text}: the process needs CAP_SYS_NICE or a limit RLIMIT_RTPRIO (LimitRTPRIO= in systemd)"
    if error.errno == errno.EINVAL and setting is ThreadSetting.CPUS:
        return f"{text}: none of these CPUs is open to the process"
    return text
