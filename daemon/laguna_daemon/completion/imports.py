"""What a file imports: names, and the files in the repository that may declare them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_PYTHON_FROM = re.compile(r"^\s*from\s+(\.*)([\w.]*)\s+import\s+\(?([^#\n]*)")
_SCRIPT_FROM = re.compile(
    r"""^\s*(?:import|export)\s+(?:type\s+)?(?:[\w$*]+\s*,?\s*)?\{([^}]*)\}\s*from\s*['"](\.[^'"]+)"""
)
_SCRIPT_DEFAULT = re.compile(r"""^\s*import\s+([A-Za-z_$][\w$]*)\s+from\s*['"](\.[^'"]+)""")
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
_ENDINGS = (".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.js")
_SOURCES = ("", "src", "lib")
_MOST_LINES = 200
_SCRIPTS = frozenset(["javascript", "typescript", "javascriptreact", "typescriptreact", "vue", "svelte"])
_WORDS = ("import", "include", "export")


@dataclass(frozen=True, slots=True)
class Import:
    """Some names, or none for all that a file declares, and the paths it may be at (relative to the root, posix)."""

    names: tuple[str, ...]
    candidates: tuple[str, ...]


def importing(lines: Sequence[str]) -> tuple[str, ...]:
    """Those of a file's first lines that can name an import: while these stay the same, so do its imports."""
    return tuple(line for line in lines[:_MOST_LINES] if any(word in line for word in _WORDS))


def imports(lines: Sequence[str], path: str, language: str) -> list[Import]:
    """The imports at the top of a file at ``path`` (relative to its root)."""
    folder = PurePosixPath(path).parent
    found: list[Import] = []
    for line in lines[:_MOST_LINES]:
        if language == "python":
            found += _python(line, folder)
        elif language in _SCRIPTS:
            found += _script(line, folder)
        elif language in ("c", "cpp") and (match := _INCLUDE.match(line)):
            found.append(Import((), tuple(_paths([match[1]], [str(folder), "include", *_SOURCES]))))
    return found


def _python(line: str, folder: PurePosixPath) -> Iterator[Import]:
    match = _PYTHON_FROM.match(line)
    if match is None:
        return
    dots, module, names = match.groups()
    inside = module.replace(".", "/")
    if dots:
        base = folder
        for _ in dots[1:]:
            base = base.parent
        bases = [str(base)]
    else:
        # A package may lie in any folder above the file, as with src layouts and monorepos.
        bases = [*dict.fromkeys([*_SOURCES, *(str(parent) for parent in folder.parents), str(folder)])]
    paths = _paths([f"{inside}.py", f"{inside}/__init__.py"] if inside else ["__init__.py"], bases)
    wanted = tuple(name.split(" as ")[0].strip(" ()\\\n") for name in names.split(","))
    wanted = tuple(name for name in wanted if name.isidentifier())
    if wanted:
        yield Import(wanted, tuple(paths))


def _script(line: str, folder: PurePosixPath) -> Iterator[Import]:
    for pattern in (_SCRIPT_FROM, _SCRIPT_DEFAULT):
        match = pattern.match(line)
        if match is None:
            continue
        names = tuple(name.split(" as ")[0].strip().removeprefix("type ").strip() for name in match[1].split(","))
        target = PurePosixPath(match[2])
        stem = str(target.with_suffix("")) if target.suffix in (".js", ".ts", ".mjs") else str(target)
        endings = [f"{stem}{ending}" for ending in _ENDINGS]
        yield Import(tuple(name for name in names if name), tuple(_paths(endings, [str(folder)])))


def _paths(names: Sequence[str], bases: Sequence[str]) -> Iterator[str]:
    for base in bases:
        for name in names:
            path = _normal(f"{base}/{name}")
            if path is not None:
                yield path


def _normal(path: str) -> str | None:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
