"""What an instruction is about: the identifiers and the files that it names.

Only words that look like code count, and words behind verbs such as ``rename``: a plan of files comes from a search
for them, so it works for every language and needs no parser.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_WORD = r"[^\W\d]\w*"
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTED = re.compile(rf"[\"']({_WORD}(?:[./]\w+)*)[\"']")
_BARE = re.compile(r"[\w./-]*\w")
_VERB = re.compile(
    r"\b(?:rename|replace|remove|delete|drop|inline|move|deprecate|extract)\s+"
    r"(?:(?:the|all|every|public|private|function|method|class|module|variable|constant|field|attribute|argument|"
    rf"parameter|struct|type|interface|file)\s+)*({_WORD})\b",
    re.IGNORECASE,
)
# What stands behind one of these is the new name, which is nowhere yet, or elsewhere with another meaning.
_NEW = re.compile(r"\b(?:to|into|as|with|named|called|->|=>)\s+(?:the\s+|a\s+|an\s+|new\s+|name\s+)*[`\"']?$")
_AND_NEW = re.compile(r"\b(?:into|with)\s+[`\"'\w./-]+(?:,\s*[`\"'\w./-]+)*,?\s+and\s+[`\"']?$")
_ENDINGS = {
    "c", "cc", "cfg", "cpp", "cs", "css", "go", "h", "hpp", "html", "ini", "java", "js", "json", "jsx", "kt", "lock",
    "lua", "md", "mjs", "php", "py", "pyi", "rb", "rs", "rst", "scala", "sh", "sql", "swift", "toml", "ts", "tsx",
    "txt", "vue", "xml", "yaml", "yml", "zig",
}  # fmt: skip
_MEANINGLESS = {"__init__", "__main__", "index", "main", "mod", "lib", "test", "tests", "utils", "util", "readme"}


def named_files(instruction: str, known: Collection[str]) -> tuple[str, ...]:
    """Those of the ``known`` paths that the instruction names, by path or by a file name that only one of them has."""
    names: dict[str, list[str]] = {}
    for path in known:
        names.setdefault(path.rpartition("/")[2], []).append(path)
    found: dict[str, None] = {}
    for written in _BARE.findall(instruction):
        word = written.removeprefix("./")
        if word in known:
            found[word] = None
        elif "." in word and len(names.get(word, ())) == 1:
            found[names[word][0]] = None
    return tuple(found)


def identifiers(instruction: str, files: Iterable[str] = ()) -> tuple[str, ...]:
    """The identifiers that the instruction names, new names left out; of named ``files`` (modules) their stems."""
    found: dict[str, None] = {}
    for start, text in _candidates(instruction):
        before = instruction[:start]
        if _NEW.search(before) or _AND_NEW.search(before):
            continue
        name = _identifier(text)
        if name is not None:
            found[name] = None
    for path in files:
        stem = path.rpartition("/")[2].partition(".")[0]
        if len(stem) >= 3 and stem.isidentifier() and stem.lower() not in _MEANINGLESS:
            found[stem] = None
    return tuple(found)


def new_names(instruction: str) -> tuple[str, ...]:
    """The identifiers that the instruction gives as new names (``rename X to Y``)."""
    found = {
        name: None
        for start, text in _candidates(instruction)
        if _NEW.search(instruction[:start]) and (name := _identifier(text)) is not None
    }
    bare = re.findall(rf"\b(?:to|into|as)\s+[`\"']?({_WORD})[`\"']?\s*(?:[.,;]|$)", instruction)
    return tuple(found | dict.fromkeys(bare))


def pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Matches any of the words where it stands alone."""
    either = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)")


def _candidates(instruction: str) -> list[tuple[int, str]]:
    """(place, text) of everything that may be an identifier, in order."""
    found = {match.start(1): match[1] for match in _CODE.finditer(instruction)}
    found |= {match.start(1): match[1] for match in _QUOTED.finditer(instruction)}
    found |= {match.start(1): match[1] for match in _VERB.finditer(instruction) if match.start(1) not in found}
    inside = [(match.start(), match.end()) for match in _CODE.finditer(instruction)]
    for match in _BARE.finditer(instruction):
        if not any(start <= match.start() < end for start, end in inside) and _looks_like_code(match, instruction):
            found.setdefault(match.start(), match[0])
    return sorted(found.items())


def _looks_like_code(match: re.Match[str], instruction: str) -> bool:
    word = match[0]
    if "/" in word:
        return False
    called = instruction[match.end() : match.end() + 1] == "("
    return called or "_" in word.strip("_") or bool(re.search(r"[a-z0-9][A-Z]", word))


def _identifier(text: str) -> str | None:
    """The name in a piece of code: the last part of a dotted one; None for paths and whole expressions."""
    text = re.sub(r"\(.*\)$", "", text.strip())
    parts = re.split(r"\.|::|#", text)
    if len(parts) > 1 and parts[-1].lower() in _ENDINGS:
        return None
    name = parts[-1]
    return name if re.fullmatch(_WORD, name) and all(re.fullmatch(r"\w+", part) for part in parts) else None
