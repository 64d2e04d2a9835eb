"""Messages between feeder, node and consumer."""
