"""Small wheels made on the fly, and a folder or server that pip finds them in."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, *, requires: Sequence[str] = (), files: Mapping[str, bytes] | None = None
) -> Path:
    """A pure wheel of one module (or of ``files``) with the given requirements."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {item}" for item in requires]
    content = dict(files or {f"{stem}.py": f"version = {version!r}\n".encode()})
    content[f"{info}/METADATA"] = ("\n".join(metadata) + "\n").encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in content.items()]
    content[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode()
    wheel = folder / f"{stem}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            archive.writestr(path, data)
    return wheel


def rebuild_wheel(folder: Path, name: str) -> Path:
    """A wheel of a pure package that is installed beside the tests."""
    found = importlib.metadata.distribution(name)
    files = {
        str(file): Path(str(found.locate_file(file))).read_bytes()
        for file in found.files or ()
        if file.suffix == ".py" and ".." not in file.parts
    }
    return write_wheel(folder, name, found.version, files=files)


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback; the address has no closing slash."""
    handler = partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_index(folder: Path, wheels: Sequence[Path]) -> None:
    """A package index (PEP 503) of the given wheels, to be served."""
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        project = folder / wheel.name.split("-")[0].replace("_", "-")
        project.mkdir(exist_ok=True)
        (project / wheel.name).write_bytes(wheel.read_bytes())
        page = "".join(f'<a href="{path.name}">{path.name}</a>\n' for path in sorted(project.glob("*.whl")))
        (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{page}</body></html>")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
