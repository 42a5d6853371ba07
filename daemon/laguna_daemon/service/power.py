"""Whether work that nobody waits for may be done now: if it is wanted, on mains power, outside of quiet hours."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time

import psutil

from laguna_daemon.config import WarmSettings


def on_battery() -> bool:
    """Whether the machine runs from its battery; False where there is none, or nobody can tell."""
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError, ValueError):
        return False
    return battery is not None and battery.power_plugged is False


def within(hours: str, now: time) -> bool:
    """Whether ``now`` is in ``hours``, "22:00-07:00" in local time; they may span midnight. Empty: never."""
    if not hours:
        return False
    begin, end = (time.fromisoformat(part.strip()) for part in hours.split("-"))
    return begin <= now < end if begin <= end else now >= begin or now < end


def why_not(
    settings: WarmSettings,
    *,
    battery: Callable[[], bool] = on_battery,
    now: Callable[[], datetime] = datetime.now,
) -> str:
    """The reason why idle work must wait, in words a user can read; empty if it need not."""
    if not settings.automatic:
        return "automatic warm-up is turned off"
    if within(settings.hours, now().time()):
        return f"quiet hours ({settings.hours})"
    if not settings.on_battery and battery():
        return "the machine runs on battery"
    return ""
