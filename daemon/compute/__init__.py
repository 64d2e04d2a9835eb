"""The compute thread: sealed slots through the workspaces of the engine."""
