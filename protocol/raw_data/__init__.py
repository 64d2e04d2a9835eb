"""The containers of raw data that every detector shares."""
