"""What must never be in a prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass

MARKER = re.compile(r"\[redacted: (?P<kind>[a-z0-9 -]+)\]")
"""A value that was taken out. Whoever edits text must refuse to write one of these over a real value."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret that was taken out: what it looks like, and where it starts (line from 1)."""

    kind: str
    line: int
    path: str


@dataclass(frozen=True, slots=True)
class Redacted:
    """Text whose secrets are markers; line numbers are those of the original."""

    text: str
    findings: tuple[Finding, ...]


_RULE = re.compile(r"gh[pousr]_[A-Za-z0-9]{36,}")


def redact(text: str, path: str) -> Redacted:
    """Take secret values out of `text`, which is, or is to be, at `path`."""
    findings = [Finding("github token", text.count("\n", 0, m.start()) + 1, path) for m in _RULE.finditer(text)]
    if not findings:
        return Redacted(text, ())
    return Redacted(_RULE.sub("[redacted: github token]", text), tuple(findings))


_EXAMPLE = re.compile(r"\.(?:example|sample|template|dist|defaults?)$")
_FORBIDDEN = (
    (re.compile(r"^\.env(?:\..+)?$|^.+\.env$|^\.envrc$"), "environment file"),
    (
        re.compile(r"^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|\.(?:pem|key|ppk|p12|pfx|jks|keystore|kdbx)$"),
        "private key",
    ),
    (
        re.compile(r"^[._]netrc$|^\.(?:pgpass|pypirc|git-credentials|my\.cnf|htpasswd|vault-token)$"),
        "credentials",
    ),
)


def forbidden(path: str) -> str | None:
    """Why a whole file must stay out of every prompt, whatever ignore files or selections say; or None."""
    name = path.rpartition("/")[2].lower()
    if _EXAMPLE.search(name):
        return None
    for pattern, reason in _FORBIDDEN:
        if pattern.search(name):
            return reason
    return None
