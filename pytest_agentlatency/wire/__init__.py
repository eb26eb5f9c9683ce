"""Providers' formats, without I/O: what a request asks and a response says. A new one is a file and a line."""
