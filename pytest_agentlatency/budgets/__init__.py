"""What a run must keep: the phrase language, the figures it may name, and the verdicts."""
