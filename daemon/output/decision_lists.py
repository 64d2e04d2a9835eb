"""Output lists of the events of a MEP, for its decision message."""

from collections.abc import Mapping, Sequence

from hltnode.processing.framework.output_lists import ListContent
from hltnode.protocol.transport.decisions import room_for_lists
from hltnode.protocol.value_lists import ListDescription, ValueList, encode_block


class DecisionLists:
    """Encodes lists in an order. A list that does not fit any more is left out of the message as a whole.

    Args:
        descriptions: the lists of a message.
        max_bytes: bound on the lists of a message in bytes.
    """

    def __init__(self, descriptions: Sequence[ListDescription] = (), max_bytes: int = 0) -> None:
        self._descriptions = descriptions
        self._texts = {each.name: each.to_bytes() for each in descriptions}
        self._left_out = {each.name: encode_block(each, None) for each in descriptions}
        self._max_bytes = max_bytes

    def encode(self, lists: Mapping[str, ListContent], n_events: int, n_lines: int) -> tuple[bytes, int]:
        """The field `lists` of a decision message, and the number of lists that are left out."""
        # The marks of lists that are left out have room in any case.
        room = min(self._max_bytes, room_for_lists(n_events, n_lines))
        blocks = []
        n_left_out = 0
        for each in self._descriptions:
            content = lists[each.name]
            size = 4 * (n_events + 1) + each.content_size(int(content.offsets[-1])) + len(self._left_out[each.name])
            fits = size <= room
            room -= size if fits else 0
            n_left_out += not fits
            found = ValueList(content.offsets, content.values) if fits else None
            blocks.append(encode_block(each, found, self._texts[each.name]) if fits else self._left_out[each.name])
        return b"".join(blocks), n_left_out
