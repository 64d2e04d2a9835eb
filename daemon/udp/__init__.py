"""UDP intake: datagrams of listed senders, joined into MEPs by compiled code, and their feeder inside the node."""
