"""Meeting points of lanes that diverge at a branch: the immediate post-dominators of a kernel.

Post-dominators by the algorithm of Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm", Rice University
TR-06-33870, 2006) on the reversed graph of basic blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.ptx.parser import Kernel, PtxError, Statement

EXIT = -1
"""The end of the kernel, as a position."""


def is_branch(statement: Statement) -> bool:
    return statement.opcode.split(".")[0] == "bra"


def is_exit(statement: Statement) -> bool:
    return statement.opcode in ("ret", "exit")


def target_of(kernel: Kernel, statement: Statement) -> int:
    """Target position of a branch. Raises PtxError."""
    try:
        return kernel.labels[statement.operands[0]]
    except KeyError:
        raise PtxError(f"{kernel.name}: no label for {statement.text!r}") from None


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Points where lanes diverge, leave and meet, as positions of statements, or EXIT.

    meeting: for each branch that may diverge, the meeting point of its sides. next_meeting: for each block, by its
    start position, the next point that all lanes reach unless they leave loops. leaving: (branch, taken side) pairs
    that lead out of more than one loop.
    """

    meeting: dict[int, int]
    next_meeting: dict[int, int]
    leaving: set[tuple[int, bool]]


def control_flow(kernel: Kernel) -> ControlFlow:
    """The meeting points of a kernel.

    A lane that leaves several loops at once does not reach the ends of the inner ones, and the other lanes do not wait
    for it. The convergence barriers of ptxas do the same (BSSY, BSYNC, and BREAK for a lane that leaves).
    """
    first, successors = _basic_blocks(kernel)
    end = len(first)
    loops = _loops(successors)
    leaves = {
        (block, follower)
        for block, follows in enumerate(successors)
        for follower in follows
        if len(follows) > 1 and sum(block in loop and follower not in loop for loop in loops) > 1
    }
    staying = [[f for f in follows if (block, f) not in leaves] for block, follows in enumerate(successors)]
    post_dominators = _immediate_post_dominators(staying)
    position_of = [*first, EXIT]
    meeting: dict[int, int] = {}
    leaving: set[tuple[int, bool]] = set()
    for block in range(end):
        last = (first[block + 1] if block + 1 < end else len(kernel.statements)) - 1
        if is_branch(kernel.statements[last]) and kernel.statements[last].guard is not None:
            meeting[last] = position_of[post_dominators[block]]
            falls, jumps = successors[block]
            leaving |= {(last, taken) for taken, to in ((False, falls), (True, jumps)) if (block, to) in leaves}
    next_meeting = {first[block]: position_of[post_dominators[block]] for block in range(end)}
    return ControlFlow(meeting, next_meeting, leaving)


def _loops(successors: list[list[int]]) -> list[set[int]]:
    """The blocks of each natural loop."""
    entry = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(entry + 1)]
    for block, follows in enumerate(successors):
        for follower in follows:
            predecessors[follower].append(block)
    # Dominators are the post-dominators of the reversed graph, whose end is the first block.
    backward = [list(predecessors[block]) for block in range(entry)]
    backward[0].append(entry)
    dominators = _immediate_post_dominators(backward)
    bodies: dict[int, set[int]] = {}
    for block, follows in enumerate(successors):
        for head in follows:
            if head == entry or not _dominates(head, block, dominators, entry):
                continue
            body = bodies.setdefault(head, {head})
            rest = [block]
            while rest:
                one = rest.pop()
                if one not in body:
                    body.add(one)
                    rest += predecessors[one]
    return list(bodies.values())


def _dominates(one: int, other: int, dominators: list[int], root: int) -> bool:
    while other != one and other != root:
        other = dominators[other]
    return other == one


def _basic_blocks(kernel: Kernel) -> tuple[list[int], list[list[int]]]:
    """Start positions of the basic blocks, and successors by number; the number after the last block is the exit."""
    statements = kernel.statements
    if not statements or not (is_exit(statements[-1]) or (is_branch(statements[-1]) and statements[-1].guard is None)):
        raise PtxError(f"{kernel.name} runs over its end")
    first = {0}
    for position, statement in enumerate(statements):
        if is_branch(statement):
            first |= {position + 1, target_of(kernel, statement)}
        elif is_exit(statement):
            first.add(position + 1)
    begins = sorted(position for position in first if position < len(statements))
    number = {position: block for block, position in enumerate(begins)}
    exit_block = len(begins)
    successors: list[list[int]] = []
    for block in range(len(begins)):
        end = begins[block + 1] if block + 1 < len(begins) else len(statements)
        last = statements[end - 1]
        follows = [] if (is_branch(last) or is_exit(last)) and last.guard is None else [block + 1]
        if is_branch(last):
            follows.append(number[target_of(kernel, last)])
        elif is_exit(last):
            follows.append(exit_block)
        successors.append(follows)
    return begins, successors


def _immediate_post_dominators(successors: list[list[int]]) -> list[int]:
    """Immediate post-dominator of each block; the exit for blocks without a path to the exit."""
    exit_block = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(exit_block + 1)]
    for block, follows in enumerate(successors):
        for successor in follows:
            predecessors[successor].append(block)
    order = _post_order(predecessors, exit_block)
    rank = {block: i for i, block in enumerate(order)}
    dominator: dict[int, int] = {exit_block: exit_block}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [successor for successor in successors[block] if successor in dominator]
            new = known[0]
            for successor in known[1:]:
                new = _common(new, successor, dominator, rank)
            if dominator.get(block) != new:
                dominator[block] = new
                changed = True
    return [dominator.get(block, exit_block) for block in range(exit_block)]


def _common(one: int, other: int, dominator: dict[int, int], rank: dict[int, int]) -> int:
    while one != other:
        while rank[one] < rank[other]:
            one = dominator[one]
        while rank[other] < rank[one]:
            other = dominator[other]
    return one


def _post_order(edges: list[list[int]], root: int) -> list[int]:
    """Depth first from the root along edges; the root comes last."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        node, rest = stack[-1]
        for follower in rest:
            if follower not in seen:
                seen.add(follower)
                stack.append((follower, iter(edges[follower])))
                break
        else:
            order.append(node)
            stack.pop()
    return order
