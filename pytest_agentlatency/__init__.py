"""Latency regression testing of LLM agents: record one real run, then fail offline when it gets slower."""
