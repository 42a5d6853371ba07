"""``laguna-daemon service install | remove``: the daemon as a systemd unit of the user."""

from __future__ import annotations

import os

import typer

from laguna_daemon import systemd
from laguna_daemon.cli.output import remark

app = typer.Typer(help="Run the daemon as a systemd user unit.", no_args_is_help=True, rich_markup_mode=None)


@app.command("install")
def install() -> None:
    """Write and enable the unit; the daemon then starts at log-in and after a crash."""
    told = systemd.install()
    remark(f"Written: {systemd.unit_file()}")
    if told:
        remark(f"Enabled; it starts at the next log-in, or now: systemctl --user start {systemd.NAME}")
    else:
        remark(f"No systemd of this user answered. Later: systemctl --user enable --now {systemd.NAME}")


@app.command("remove")
def remove() -> None:
    """Stop, disable and remove the unit."""
    remark("The unit is gone." if systemd.remove() else "There was no unit.")


@app.command("show")
def show() -> None:
    """Print the unit without writing it."""
    print(systemd.unit_text(os.environ), end="")
