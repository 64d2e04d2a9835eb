"""Access to the machine: GPU, memory, free space, systemd."""
