"""When work that nobody waits for may be done."""

from __future__ import annotations

from datetime import datetime, time

import pytest
from pydantic import ValidationError

from laguna_daemon.config import WarmSettings
from laguna_daemon.service.power import on_battery, why_not, within


@pytest.mark.parametrize(
    ("hours", "now", "quiet"),
    [
        ("22:00-07:00", "23:30", True),
        ("22:00-07:00", "06:59", True),
        ("22:00-07:00", "07:00", False),
        ("22:00-07:00", "12:00", False),
        ("09:00 - 17:30", "17:29", True),
        ("09:00 - 17:30", "08:59", False),
        ("", "12:00", False),
    ],
)
def test_quiet_hours(hours: str, now: str, quiet: bool) -> None:
    assert within(hours, time.fromisoformat(now)) is quiet


def test_each_reason_is_said() -> None:
    def reason(battery: bool = False, **settings: object) -> str:
        chosen = WarmSettings.model_validate(settings)
        return why_not(chosen, battery=lambda: battery, now=lambda: datetime(2026, 1, 1, 12))

    assert reason() == ""
    assert "turned off" in reason(automatic=False)
    assert "battery" in reason(battery=True)
    assert reason(battery=True, on_battery=True) == ""
    assert "quiet hours" in reason(hours="11:00-13:00")


@pytest.mark.parametrize("hours", ["22", "22:00-25:00", "a-b", "1-2-3"])
def test_wrong_hours_are_refused(hours: str) -> None:
    with pytest.raises(ValidationError):
        WarmSettings(hours=hours)


def test_a_machine_without_battery_runs_on_mains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.sensors_battery", lambda: None, raising=False)
    assert on_battery() is False
