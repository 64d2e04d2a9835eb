"""Commands that send MEPs to nodes or record MEPs from a tap."""
