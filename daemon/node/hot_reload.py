"""The hot reload: the configuration keys that may change while the node runs, and their application."""

import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from hltnode.client.keys import SecurityError
from hltnode.daemon.common.log import get_logger, set_level
from hltnode.daemon.common.vocabulary import Outcome
from hltnode.daemon.compute.conditions_of_runs import ConditionsOfRuns
from hltnode.daemon.configuration.loading import ConfigError, load_config
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.machine.systemd import Notifier
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.node.sizing import changing_times
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.run_control.controller import CommandFailedError
from hltnode.daemon.security.access_control import AccessControl
from hltnode.processing.selection.errors import ConditionsError

# All other keys determine buffers, sockets or the trigger, and need a restart.
HOT_KEYS = (
    ("builder", "mep_timeout_ms"),
    ("pipeline", "flush_deadline_us"),
    ("log", "level"),
    ("security", "feeders"),
    ("security", "operators"),
    ("security", "consumers"),
    ("security", "http_token_file"),
)

log = get_logger("hot_reload")


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Difference of two configurations: hot keys with old and new value, and keys that need a restart."""

    config: NodeConfig
    """The configuration after the reload: the old one with the hot keys of the new one."""
    hot: dict[str, tuple[object, object]]
    cold: tuple[str, ...]


def compare(old: NodeConfig, new: NodeConfig) -> ConfigChange:
    """Divide the differences into hot keys and keys that need a restart."""
    hot: dict[str, tuple[object, object]] = {}
    cold: list[str] = []
    update: dict[str, dict[str, object]] = {}
    for name in NodeConfig.model_fields:
        before, after = getattr(old, name), getattr(new, name)
        assert isinstance(before, BaseModel)
        for key in type(before).model_fields:
            values = getattr(before, key), getattr(after, key)
            if values[0] == values[1]:
                continue
            if (name, key) in HOT_KEYS:
                hot[f"{name}.{key}"] = values
                update.setdefault(name, {})[key] = values[1]
            else:
                cold.append(f"{name}.{key}")
    sections = {name: getattr(old, name).model_copy(update=values) for name, values in update.items()}
    return ConfigChange(old.model_copy(update=sections), hot, tuple(cold))


class HotReload:
    """Reloads the configuration file of a running node."""

    def __init__(
        self,
        config: NodeConfig,
        path: Path | None,
        access: AccessControl,
        control: BuilderControl,
        counters: OperationCounters,
        notifier: Notifier,
        conditions: ConditionsOfRuns,
    ) -> None:
        self.config = config
        """The current configuration."""
        self._path = path
        self._access = access
        self._control = control
        self._counters = counters
        self._notifier = notifier
        self._conditions = conditions

    def reload(self) -> str:
        """Apply the hot keys, key files, token and folder of conditions; returns a text with the changes.

        Raises:
            CommandFailedError: the file, a key, the token or the conditions are invalid; the old values stay.
        """
        if self._path is None:
            raise CommandFailedError("this node was started without a configuration file")
        self._notifier.reloading()
        try:
            change = compare(self.config, load_config(self._path))
            # Before the keys, which are in use once they are read: a reload applies everything or nothing.
            folder = self._conditions.read_folder()
            self._access.reload(change.config.security)
        except (ConfigError, SecurityError, ConditionsError) as error:
            self._counters.reloads[Outcome.REFUSED] += 1
            self._counters.last_reload_refused = True
            log.error("reload_failed", reason=str(error), version=self._counters.config_version)
            raise CommandFailedError(f"the old values stay: {error}") from error
        finally:
            self._notifier.ready("configuration read")
        self._apply(change)
        version = ""
        if folder is not None:
            self._conditions.use_folder(folder)
            version = f"; conditions: version {folder.version}"
        changed = ", ".join(f"{key}: {old} -> {new}" for key, (old, new) in change.hot.items()) or "nothing"
        cold = f"; these need a restart: {', '.join(change.cold)}" if change.cold else ""
        return f"changed: {changed}{version}{cold}; the trigger configuration is only read at the start"

    def _apply(self, change: ConfigChange) -> None:
        config = self.config = change.config
        self._control.set_times(changing_times(config))
        if "log.level" in change.hot:
            set_level(config.log.level)
        counters = self._counters
        counters.reloads[Outcome.OK] += 1
        counters.last_reload_refused = False
        counters.last_reload_s = time.time()
        for key, (old, new) in change.hot.items():
            log.info("config_changed", key=key, old=str(old), new=str(new), version=counters.config_version)
        if change.cold:
            log.warning("config_needs_restart", keys=list(change.cold))
