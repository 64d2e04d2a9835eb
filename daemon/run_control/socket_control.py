"""Commands over the control socket, from operators only."""

from collections.abc import Callable

from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.vocabulary import Outcome
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.run_control.controller import RunController
from hltnode.protocol.transport.messages import MAX_TEXT_LENGTH
from hltnode.protocol.transport.run_control_messages import Command, Reply


class SocketControl:
    """Checks the sender, then executes the command.

    Args:
        may_command: whether a peer of the control socket is an operator.
    """

    def __init__(
        self, controller: RunController, may_command: Callable[[Peer], bool], counters: OperationCounters
    ) -> None:
        self._controller = controller
        self._may_command = may_command
        self._counters = counters

    def answer(self, peer: Peer, command: Command) -> Reply:
        """The reply to one command."""
        if not self._may_command(peer):
            self._counters.commands[command.command, Outcome.REFUSED] += 1
            return Reply(command.request, False, self._controller.state, "not an operator: see SECURITY.md")
        result = self._controller.execute(command.command, command.run, f"control {peer.address}")
        # The limit of the message is in bytes, and file names in the text may hold any characters.
        text = result.text.encode("utf-8", "replace")[:MAX_TEXT_LENGTH].decode("utf-8", "ignore")
        return Reply(command.request, result.ok, result.state, text)
