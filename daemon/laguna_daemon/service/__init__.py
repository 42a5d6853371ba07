"""What the product does, free of transport: ask, complete, warm, conversations."""

from laguna_daemon.service.service import Service

__all__ = ["Service"]
