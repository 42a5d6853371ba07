"""One daemon per user: started once, found again, ended with its engine, replaced after a crash."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess

import psutil

from support.daemon import Home, alive, until


def engine_pids(home: Home) -> list[int]:
    """Processes of this home's engine, by the socket in their command line."""
    wanted = str(home.runtime / "engine.sock")
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if wanted in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def test_start_is_idempotent_and_stop_ends_daemon_and_engine(home: Home) -> None:
    first = home.json("start", "--wait", "--json")
    second = home.json("start", "--json")
    assert first["pid"] == second["pid"] == home.daemon_pid()
    assert first["engine"]["phase"] == "ready"
    assert engine_pids(home)
    assert home.run("stop").returncode == 0
    assert not alive(first["pid"])
    assert engine_pids(home) == []
    assert list(home.runtime.glob("*.sock")) == []
    again = home.run("stop")
    assert again.returncode == 0
    assert "No daemon is running" in again.stderr


def test_the_daemon_is_detached_and_private(home: Home) -> None:
    pid = home.json("start", "--json", IRRELEVANT="1")["pid"]
    process = psutil.Process(pid)
    assert os.getsid(pid) == pid != os.getsid(0)
    assert process.cwd() == "/"
    assert "IRRELEVANT" not in process.environ()
    assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o700
    for name in ("api.sock", "lsp.sock"):
        assert stat.S_IMODE((home.runtime / name).stat().st_mode) == 0o600


def test_two_starts_at_once_give_one_daemon(home: Home) -> None:
    starts = [home.popen("start", "--json") for _ in range(4)]
    outputs = [start.communicate(timeout=60) for start in starts]
    assert [start.returncode for start in starts] == [0] * 4, outputs
    assert len({out for out, _ in outputs for out in [_pid(out)]}) == 1
    daemons = [p for p in psutil.process_iter(["cmdline"]) if _is_daemon_of(home, p)]
    assert len(daemons) == 1


def _pid(output: bytes) -> int:
    import json

    return int(json.loads(output)["pid"])


def _is_daemon_of(home: Home, process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
        environment = process.environ()
    except psutil.Error:
        return False
    return "laguna_daemon.process" in command and environment.get("LAGUNA_RUNTIME_DIR") == str(home.runtime)


def test_a_killed_daemon_leaves_no_engine_and_the_next_start_works(home: Home) -> None:
    first = home.json("start", "--wait", "--json")
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: engine_pids(home) == [])
    assert (home.runtime / "api.sock").exists()  # stale, as a crash leaves it
    second = home.json("start", "--wait", "--json")
    assert second["pid"] != first["pid"]
    assert second["engine"]["phase"] == "ready"


def test_stale_files_that_are_no_sockets_do_not_matter(home: Home) -> None:
    home.runtime.mkdir(mode=0o700)
    (home.runtime / "api.sock").write_text("left behind")
    (home.runtime / "daemon.lock").write_text("999999999")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(home.runtime / "lsp.sock"))
    dead.close()
    assert home.run("status").stdout.strip() == "No daemon is running."
    assert home.json("start", "--wait", "--json")["engine"]["phase"] == "ready"


def test_a_folder_open_to_others_is_closed_and_a_foreign_one_refused(home: Home) -> None:
    home.runtime.mkdir(mode=0o755)
    home.json("start", "--json")
    assert stat.S_IMODE(home.runtime.stat().st_mode) == 0o700
    home.run("stop")
    link = home.folder / "elsewhere"
    link.symlink_to("/usr")
    done = home.run("start", LAGUNA_RUNTIME_DIR=str(link))
    assert done.returncode == 1
    assert "not a folder of yours" in done.stderr


def test_a_runtime_path_too_long_for_a_socket_is_refused(home: Home) -> None:
    done = home.run("start", LAGUNA_RUNTIME_DIR=str(home.folder / ("x" * 100)))
    assert done.returncode == 1
    assert "too long for a Unix socket" in done.stderr


def test_a_daemon_of_another_version_is_replaced_when_idle_only(home: Home) -> None:
    first = home.json("start", "--wait", "--json")
    script = (
        "import laguna_daemon, sys; laguna_daemon.__version__ = '99.0.0'; "
        "from laguna_daemon.lifecycle import ensure_running; "
        "sys.exit(0 if ensure_running().version == '99.0.0' else 3)"
    )
    # The replacement is of the installed version, so the handshake fails after the old one has been retired.
    done = subprocess.run([os.sys.executable, "-c", script], env=home.env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert not alive(first["pid"])


def test_settings_with_an_unknown_name_are_refused_by_name(home: Home) -> None:
    config = home.folder / "config" / "laguna-daemon"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("enigne = 3\n")
    done = home.run("start")
    assert done.returncode == 2
    assert "enigne" in done.stderr


def test_logs_show_the_daemon_and_the_engine(home: Home) -> None:
    home.json("start", "--wait", "--json")
    assert "daemon ready" in home.run("logs").stdout
    assert "startup complete" in home.run("logs", "engine", "-n", "5").stdout
    assert home.run("logs", "nonsense").returncode == 2


def test_an_editors_bridge_does_not_talk_to_a_daemon_of_another_version(home: Home) -> None:
    first = home.json("start", "--wait", "--json")
    lock = home.runtime / "daemon.lock"
    lock.write_text(f"{first['pid']} 0.0.1")  # as an older daemon would have written it
    bridge = home.popen("lsp", stdin=subprocess.PIPE)
    try:
        assert bridge.stdin is not None
        # The daemon says its own version when asked, finds that nothing differs, and serves.
        until(lambda: home.json("status", "--json")["sessions"] == 1)
        lock.write_text("999999 0.0.1")
    finally:
        bridge.kill()
        bridge.communicate()


def test_settings_that_are_wrong_have_the_exit_code_of_wrong_values(home: Home) -> None:
    done = home.run("start", LAGUNA_ENGINE__COMMAND="not a list")
    assert done.returncode == 2, done.stderr
    assert "engine.command is wrong" in done.stderr


def test_a_runtime_folder_that_cannot_be_written_is_said_without_a_traceback(home: Home) -> None:
    (home.runtime / "daemon.lock").mkdir(parents=True)
    home.runtime.chmod(0o700)
    done = home.run("start")
    assert done.returncode == 1
    assert "daemon.lock" in done.stderr
    assert "Traceback" not in done.stderr
    (home.runtime / "daemon.lock").rmdir()


def test_settings_that_are_no_text_are_said_without_a_traceback(home: Home) -> None:
    settings = home.folder / "config" / "laguna-daemon" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_bytes(b'profile = "\xff"\n')
    done = home.run("start")
    assert done.returncode == 2, done.stderr
    assert "not valid TOML" in done.stderr
    assert "Traceback" not in done.stderr
