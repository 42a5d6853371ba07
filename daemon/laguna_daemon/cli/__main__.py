"""``python -m laguna_daemon.cli`` is the command itself."""

from laguna_daemon.cli import main

main()
