"""A session in a process of its own that writes until it is killed."""

import os
from multiprocessing.synchronize import Event
from pathlib import Path

from tests.daemon.storage.sessions import RUN, Session


def write_meps(directory: Path, name: str, meps: int, ready: Event, *, supervised: bool) -> None:
    """Write all MEPs that no session has acknowledged, then end the run.

    Acknowledged ids are appended to `directory`.acknowledged, one per line.
    """
    log = os.open(f"{directory}.acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    acknowledged = {int(line) for line in Path(f"{directory}.acknowledged").read_text().split()}
    session = Session(directory, name, max_file_events=20)
    if supervised:
        session.store.supervise(RUN)
    done = {mep for first, last in session.done() for mep in range(first, last + 1)}
    missing = [mep for mep in range(meps) if mep not in done | acknowledged]
    ready.set()
    for at in range(0, len(missing), 4):
        batch = missing[at : at + 4]
        session.batch(*batch, payload=2000)
        os.write(log, "".join(f"{mep}\n" for mep in batch).encode())
        session.store.confirm(RUN, max(batch[0] - 20, 0))
    session.store.end_run(RUN)
    session.store.close()
    session.store.abandon()
