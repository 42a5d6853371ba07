"""The daemon, its engine host, its clients and its language server."""

__version__ = "0.1.0"
