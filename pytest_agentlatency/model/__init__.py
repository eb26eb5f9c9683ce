"""Values only: time, phases, usage, attempts, calls, turns, lanes, runs. No I/O, no parsing, no policy."""
