"""Pure functions over a recording or a run: what it means. No I/O, no clock, no policy."""
