"""The compute thread, which sends sealed slots through the workspaces of the engine."""
