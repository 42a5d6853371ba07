"""file: URIs and paths. The client's own spelling of a URI is kept as the key of its document."""

from pathlib import Path
from urllib.parse import quote, unquote_to_bytes, urlsplit

_SAFE = "/-._~!$&'()*+,;=:@"


def to_path(uri: str) -> Path | None:
    """The absolute path a file: URI names, percent escapes decoded; None for every other URI.

    Bytes that are not UTF-8 become surrogate escapes, as everywhere in Python's file names.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    # An editor that forgets to escape "#" or "?" still means the file: they cannot be anything else.
    raw = parts.path
    if parts.query:
        raw += "?" + parts.query
    if parts.fragment:
        raw += "#" + parts.fragment
    decoded = unquote_to_bytes(raw.encode("utf-8", "surrogatepass"))
    if not decoded.startswith(b"/") or b"\0" in decoded:
        return None
    return Path(decoded.decode("utf-8", "surrogateescape"))


def from_path(path: Path) -> str:
    """The file: URI of an absolute path."""
    return "file://" + quote(str(path).encode("utf-8", "surrogateescape"), safe=_SAFE)
