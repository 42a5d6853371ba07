"""gitignore rules, as git reads them, for where git cannot be asked: folders outside git, and
`.lagunaignore`.

Patterns become regular expressions over bytes, because git matches bytes. Behaviour follows git's `dir.c`
and `wildmatch.c` and is held to git's own answers by generated trees in the tests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

OWN_FILE = ".lagunaignore"
GIT_FILE = ".gitignore"

_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb" \t\n\r\f\v",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_NEVER = re.compile(rb"(?!)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file. `regex` is matched against the base name, or the path below `base`."""

    text: str
    source: str
    line: int
    negated: bool
    folders_only: bool
    by_name: bool
    regex: re.Pattern[bytes]

    def matches(self, below: bytes, is_dir: bool) -> bool:
        """Whether the rule is about this very path (bytes, relative to the folder of the ignore file)."""
        if self.folders_only and not is_dir:
            return False
        target = below.rpartition(b"/")[2] if self.by_name else below
        return self.regex.match(target) is not None


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, first to last, and the folder (bytes, ending in `/` unless the root) they
    speak about."""

    base: bytes
    rules: tuple[Rule, ...]

    def deciding(self, path: bytes, is_dir: bool) -> Rule | None:
        """The last rule about `path` (bytes, relative to the root), which must lie below `base`."""
        below = path[len(self.base) :]
        for rule in reversed(self.rules):
            if rule.matches(below, is_dir):
                return rule
        return None


def parse_rules(data: bytes, source: str) -> tuple[Rule, ...]:
    """The rules of an ignore file's bytes. Lines that git discards are left out."""
    rules = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        rule = _parse_line(line, source, number)
        if rule is not None:
            rules.append(rule)
    return tuple(rules)


def _parse_line(line: bytes, source: str, number: int) -> Rule | None:
    if line.startswith(b"#"):
        return None
    line = _without_trailing_spaces(line.removesuffix(b"\r"))
    negated = line.startswith(b"!")
    pattern = line[1:] if negated else line
    folders_only = pattern.endswith(b"/")
    pattern = pattern.removesuffix(b"/")
    by_name = b"/" not in pattern
    pattern = pattern.removeprefix(b"/")
    if not pattern:
        return None
    regex = _compile(pattern)
    text = os.fsdecode(line)
    return Rule(text, source, number, negated, folders_only, by_name, regex)


def _without_trailing_spaces(line: bytes) -> bytes:
    end = 0
    position = 0
    while position < len(line):
        if line[position : position + 1] == b"\\":
            position += 2
            end = min(position, len(line))
            continue
        if line[position : position + 1] != b" ":
            end = position + 1
        position += 1
    return line[:end]


def _compile(pattern: bytes) -> re.Pattern[bytes]:
    # git compares the part before the first wildcard literally and hands wildmatch only the rest, so that in
    # `foo**/bar` the two stars stand at the start of what wildmatch sees.
    literal = re.match(rb"[^*?\[\\]*", pattern)
    prefix = literal.group() if literal else b""
    rest = translate(pattern[len(prefix) :])
    return _NEVER if rest is None else re.compile(re.escape(prefix) + rest + rb"\Z", re.DOTALL)


def translate(pattern: bytes) -> bytes | None:
    """A wildmatch pattern (`WM_PATHNAME`) as a regular expression, or None if it can match nothing."""
    out = []
    position = 0
    while position < len(pattern):
        char = pattern[position : position + 1]
        if char == b"*":
            piece, position = _stars(pattern, position)
        elif char == b"?":
            piece, position = rb"[^/]", position + 1
        elif char == b"[":
            found = _bracket(pattern, position + 1)
            if found is None:
                return None
            piece, position = found
        elif char == b"\\":
            if position + 1 == len(pattern):
                return None
            piece, position = re.escape(pattern[position + 1 : position + 2]), position + 2
        else:
            piece, position = re.escape(char), position + 1
        out.append(piece)
    return b"".join(out)


def _stars(pattern: bytes, start: int) -> tuple[bytes, int]:
    end = start
    while pattern[end : end + 1] == b"*":
        end += 1
    opens = start == 0 or pattern[start - 1 : start] == b"/"
    after = pattern[end : end + 1]
    if end - start > 1 and opens:
        if after == b"/":
            return rb"(?:.*/)?", end + 1
        if not after:
            return rb".*", end
        if pattern[end : end + 2] == rb"\/":
            return rb".*", end
    return rb"[^/]*", end


def _bracket(pattern: bytes, start: int) -> tuple[bytes, int] | None:
    position = start
    negated = pattern[position : position + 1] in (b"!", b"^")
    position += negated
    parts: list[bytes] = []
    first = True
    while first or pattern[position : position + 1] != b"]":
        if position >= len(pattern):
            return None
        first = False
        if pattern[position : position + 2] == b"[:":
            named = _named_class(pattern, position)
            if named is None:
                return None
            part, position = named
            if part:
                parts.append(part)
                continue
        item = _range(pattern, position)
        if item is None:
            return None
        part, position = item
        parts.append(part)
    inside = b"".join(parts)
    if negated:
        return rb"(?!/)[^" + inside + rb"]" if inside else rb"[^/]", position + 1
    return rb"(?!/)[" + inside + rb"]" if inside else rb"(?!)", position + 1


def _named_class(pattern: bytes, start: int) -> tuple[bytes, int] | None:
    """A `[:name:]` item; an empty part if the text is no class after all; None if the pattern is void."""
    closing = pattern.find(b"]", start + 2)
    if closing < 0:
        return None
    if closing - start < 3 or pattern[closing - 1 : closing] != b":":
        return b"", start
    name = pattern[start + 2 : closing - 1]
    return (_CLASSES[name], closing + 1) if name in _CLASSES else None


def _range(pattern: bytes, start: int) -> tuple[bytes, int] | None:
    low, position = _class_char(pattern, start)
    if low is None:
        return None
    following = pattern[position + 1 : position + 2]
    if pattern[position : position + 1] == b"-" and following and following != b"]":
        high, position = _class_char(pattern, position + 1)
        if high is None:
            return None
        if low > high:
            return b"", position
        return b"\\x%02x-\\x%02x" % (low, high), position
    return b"\\x%02x" % low, position


def _class_char(pattern: bytes, position: int) -> tuple[int | None, int]:
    if pattern[position : position + 1] == b"\\":
        position += 1
    if position >= len(pattern):
        return None, position
    return pattern[position], position + 1


class Ignorer:
    """Answers for paths below `root` from the files called `name` in its folders, then from `wider` rules.

    As in git, a deeper file beats a shallower one, a later line an earlier one, and nothing below an
    ignored folder can be taken back in. Folders are read once: make a new one to see changed files.
    """

    def __init__(self, root: Path, name: str, wider: Sequence[RuleFile] = ()) -> None:
        self._root = os.fsencode(root)
        self._name = os.fsencode(name)
        self._chains: dict[bytes, tuple[RuleFile, ...]] = {}
        self._ignored: dict[bytes, Rule | None] = {}
        self._wider = tuple(reversed(wider))

    def rule(self, path: str, *, is_dir: bool = False) -> Rule | None:
        """The rule that decides `path` (relative, posix): its own, or that of the topmost ignored folder
        above it."""
        encoded = os.fsencode(path)
        above = self._ignored_folder(encoded.rpartition(b"/")[0])
        return above if above is not None else self._deciding(encoded, is_dir)

    def ignores(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether `path` is out."""
        rule = self.rule(path, is_dir=is_dir)
        return rule is not None and not rule.negated

    def _ignored_folder(self, folder: bytes) -> Rule | None:
        if not folder:
            return None
        if folder not in self._ignored:
            above = self._ignored_folder(folder.rpartition(b"/")[0])
            if above is None:
                own = self._deciding(folder, True)
                above = own if own is not None and not own.negated else None
            self._ignored[folder] = above
        return self._ignored[folder]

    def _deciding(self, path: bytes, is_dir: bool) -> Rule | None:
        for rules in self._chain(path.rpartition(b"/")[0]):
            found = rules.deciding(path, is_dir)
            if found is not None:
                return found
        return None

    def _chain(self, folder: bytes) -> tuple[RuleFile, ...]:
        """Rule files that speak about the children of `folder`, the strongest first."""
        if folder not in self._chains:
            above = self._chain(folder.rpartition(b"/")[0]) if folder else self._wider
            own = self._read(folder)
            self._chains[folder] = (own, *above) if own is not None else above
        return self._chains[folder]

    def _read(self, folder: bytes) -> RuleFile | None:
        base = folder + b"/" if folder else b""
        data = read_plain(self._root + b"/" + base + self._name)
        if data is None:
            return None
        rules = parse_rules(data, os.fsdecode(base + self._name))
        return RuleFile(base, rules) if rules else None


def read_plain(path: bytes | Path) -> bytes | None:
    """The bytes of a regular file that is no symbolic link, or None: git follows no link to an ignore file
    either."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read()
        except OSError:
            return None


class Globs:
    """Include or exclude patterns of one call, in gitignore's language: a folder stands for all below it,
    and the last pattern about a path or a folder above it wins."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules = parse_rules(b"\n".join(os.fsencode(p.removeprefix("./")) for p in patterns), "selection")

    def __bool__(self) -> bool:
        return bool(self._rules)

    def rule(self, path: str) -> Rule | None:
        """The deciding pattern for a file's path (relative, posix), negated or not."""
        encoded = os.fsencode(path)
        steps = [(encoded, False)]
        while b"/" in encoded:
            encoded = encoded.rpartition(b"/")[0]
            steps.append((encoded, True))
        for rule in reversed(self._rules):
            if any(rule.matches(step, is_dir) for step, is_dir in steps):
                return rule
        return None

    def matches(self, path: str) -> bool:
        """Whether the patterns take `path`."""
        rule = self.rule(path)
        return rule is not None and not rule.negated
