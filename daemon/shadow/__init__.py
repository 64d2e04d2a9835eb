"""Shadow mode: the MEPs of a productive node as the input of this one."""
