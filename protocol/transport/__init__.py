"""What passes between feeder, node and consumer."""
