"""What secrets look like: issuers' own token shapes, keys in armour, passwords in addresses, and named values.

Shapes are those the issuers document; a named value ("password = ...") counts only if it is no placeholder and is
drawn as secrets are, so that ordinary source stays as it is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SHAPES = {
    "aws access key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "github token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b",
    "gitlab token": r"\bgl(?:pat|ptt|dt|rt|cbt|soat)-[A-Za-z0-9_-]{20,}",
    "slack token": r"\bxox[abeoprs]-(?:[0-9]+-){1,3}[A-Za-z0-9-]{16,}|\bxapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{32,}",
    "slack webhook": r"(?<=hooks\.slack\.com/services/)T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,}",
    "stripe key": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{20,}|\bwhsec_[A-Za-z0-9]{32,}",
    "google api key": r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    "google oauth secret": r"\bGOCSPX-[A-Za-z0-9_-]{28}|\bya29\.[A-Za-z0-9_-]{40,}",
    "anthropic key": r"\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{32,}",
    "openai key": r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{48}\b",
    "hugging face token": r"\bhf_[A-Za-z0-9]{34}\b",
    "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "pypi token": r"\bpypi-AgE[A-Za-z0-9_-]{50,}",
    "sendgrid key": r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    "telegram token": r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "digitalocean token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
    "azure key": r"(?<=AccountKey=)[A-Za-z0-9+/]{86}==",
    "docker token": r"\bdckr_pat_[A-Za-z0-9_-]{27,}",
    "shopify token": r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    "databricks token": r"\bdapi[a-f0-9]{32}\b",
    "vault token": r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}",
    "age key": r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}\b",
    "json web token": r"\beyJ[A-Za-z0-9_-]{14,}\.eyJ[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{16,}",
}
"""Kind of secret to the shape its issuer gives it."""

_GROUPS = {f"k{number}": kind for number, kind in enumerate(SHAPES)}
_SHAPE = re.compile("|".join(f"(?P<{group}>{SHAPES[kind]})" for group, kind in _GROUPS.items()))

# All pieces are bounded, so that a text of one line, however long, is scanned in linear time. Names, and what may
# stand between a name and its value, are matched in small letters; the value itself in the text.
_NAMED = re.compile(
    rb"""(?P<word>passw(?:or)?d|passphrase|pwd|secret|token|credentials?|
           (?:api|access|auth|private|account|encryption|signing|master)[_-]?key)
        (?:[_-]?(?:key|token|base|id|value|prod|dev|live|test)){0,2}
        ["'\]]{0,2}\s{0,8}(?::=|=>|[:=])\s{0,8}(?=[^\s=])
    """,
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""(?P<quote>["'`])(?P<quoted>[^\s"'`]{8,400})(?P=quote)
        |(?P<bare>[^\s"'`,;(){}<>\[\]]{8,400})(?=[\s,;)}<\]]|$)
    """,
    re.VERBOSE | re.MULTILINE,
)
_AUTHORISATION = re.compile(rb"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4}")
_CREDENTIALS = re.compile(r"[\w.~+/=-]{16,400}", re.ASCII)
_ADDRESS = re.compile(r"://[^\s/:@\"'`<>{}$%]{0,100}:(?P<v>[^\s/@\"'`<>{}$%]{3,200})@(?=[\w\[.-])")
_ARMOUR = re.compile(
    r"""-----BEGIN[ ](?:[A-Z0-9]{1,12}[ ]){0,3}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
        (?:[\s"'+,>|]|\\[nr]|(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,100}){0,40}
        [A-Za-z0-9+/=]{40,}
        (?:(?:[\s"'+,>|-]|\\[nr]){1,40}[A-Za-z0-9+/=]{1,}){0,2000}?
        (?:(?:[\s"'+,>|]|\\[nr]){0,40}-----END[ ][A-Z0-9 ]{0,40}-----
           |(?=(?:[\s"'+,>|-]|\\[nr]){1,40}[^A-Za-z0-9+/=\s"'+,>|\\-])
           |\Z)
    """,
    re.VERBOSE,
)
_PLACEHOLDER = re.compile(
    r"example|sample|change.?me|replace|your|placeholder|dummy|fake|redacted|insert|todo|fixme|foobar|lorem|"
    r"xxx|\*\*\*|\.\.\.|^<|^\$|^%|\$\{|\{\{|^@|environ|getenv|process\.env|secrets?\.|vars?\.|^https?://|^file:|"
    r"0123456789|12345678|abcdef|deadbeef|none|null|undefined|true|false|password|secret|passwd|hunter2$|token",
    re.IGNORECASE,
)
_PIECES = re.compile(r"[-_./:\\@+|#~]+")
_CONFIGURATION = re.compile(
    r"(?i)(?:^|/)(?:\.?env[^/]*|dockerfile[^/]*|makefile|[^/.]+|[^/]*\.(?:env|ini|cfg|conf|config|properties|ya?ml|toml|"
    r"tfvars|sh|bash|zsh|fish|ps1|bat|cmd|service|npmrc|txt|md|rst|sql|xml|plist|diff|patch))$"
)


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a text hold a secret of a kind."""

    start: int
    end: int
    kind: str


def shaped(text: str, start: int, end: int) -> Iterator[Span]:
    """Tokens that can be told by their issuer's shape."""
    for found in _SHAPE.finditer(text, start, end):
        yield Span(found.start(), found.end(), _GROUPS[found.lastgroup or ""])


def named(text: str, small: bytes, start: int, end: int, path: str) -> Iterator[Span]:
    """Values given to something that is called a secret. `small` is the text, a byte a character, in small letters."""
    for name in _NAMED.finditer(small, start, end):
        found = _VALUE.match(text, name.end())
        if found is None or not is_secret(found["quoted"] or found["bare"]):
            continue
        if found["quoted"] is not None:
            yield Span(*found.span("quoted"), _kind(name["word"]))
        elif _CONFIGURATION.search(path):
            yield Span(*found.span("bare"), _kind(name["word"]))
    for name in _AUTHORISATION.finditer(small, start, end):
        credentials = _CREDENTIALS.match(text, name.end())
        if credentials is not None and not _PLACEHOLDER.search(credentials.group()):
            yield Span(*credentials.span(), "authorization")


def _kind(word: bytes) -> str:
    return "password" if word.startswith((b"pass", b"pwd")) else "secret"


def armoured(text: str) -> Iterator[Span]:
    """Private keys between their BEGIN and END lines, or cut off."""
    for found in _ARMOUR.finditer(text):
        yield Span(found.start(), found.end(), "private key")


def in_addresses(text: str) -> Iterator[Span]:
    """Passwords in addresses of the form scheme://user:password@host."""
    for found in _ADDRESS.finditer(text):
        if is_drawn(found["v"]) or not (_PLACEHOLDER.search(found["v"]) or found["v"].isalpha() or len(found["v"]) < 6):
            yield Span(*found.span("v"), "url password")


def is_secret(value: str) -> bool:
    """Whether a named value is a secret rather than a placeholder, a reference or an identifier."""
    return not _PLACEHOLDER.search(value) and is_drawn(value)


def is_drawn(value: str) -> bool:
    """Whether a value looks drawn at random or made up as a password: kinds of character mixed inside its words."""
    pieces = [piece for piece in _PIECES.split(value) if piece]
    mixed = [piece for piece in pieces if not piece.isalpha() and not piece.isdigit()]
    if len(value) >= 20:
        return bool(mixed) and _entropy(value) >= 3.2 and any(char.isdigit() for char in value)
    kinds = (
        any(char.islower() for char in value)
        + any(char.isupper() for char in value)
        + any(char.isdigit() for char in value)
        + any(not char.isalnum() and char not in "_-./:" for char in value)
    )
    return bool(mixed) and kinds >= 3 and any(char.isdigit() for char in value)


def _entropy(value: str) -> float:
    """Bits per character of the value's own distribution (Shannon)."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
