"""What any detector needs: declarations, engine, batches, back ends."""
