"""A whole farm on this machine: nodes, the supervising feeder, and the monitoring, as processes of one command."""
