"""What the node keeps on the disk."""
