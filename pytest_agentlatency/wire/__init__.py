"""Providers' formats, without I/O: what a request asks, what a response says. Adding one is a file and a registry line."""
