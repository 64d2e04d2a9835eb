"""HA4: strips of rows, one warp for a row, runs cut into chunks of 64 pixels; 4-connected."""
