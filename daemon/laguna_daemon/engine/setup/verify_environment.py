"""Check an engine's environment against its lock file, as a script run by that environment's own Python.

``python verify_environment.py LOCK.json`` where LOCK.json holds ``pins`` (name -> version) and ``without``
(names). It imports nothing of ours. It prints one line for each thing that is wrong: a pin that is missing or
at another version, a file that a package claims and that is not there, a requirement between packages that the
pins do not satisfy. Exit status 1 if any.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def problems(pins: dict[str, str], without: set[str]) -> Iterator[str]:
    found: dict[str, Distribution] = {}
    for distribution in distributions():
        found.setdefault(normal(distribution.metadata["Name"]), distribution)
    for name, version in pins.items():
        have = found.get(name)
        if have is None:
            yield f"{name} {version} is not installed"
        elif have.version != version:
            yield f"{name} is at {have.version} instead of {version}"
        else:
            yield from missing_files(name, have)
    yield from unmet({name: found[name] for name in pins if name in found}, without)
    for name in sorted(without & set(found)):
        yield f"{name} is installed and must not be"


def missing_files(name: str, distribution: Distribution) -> Iterator[str]:
    if not distribution.files:
        yield f"{name} is installed only in part: it has no record of its files"
    for file in distribution.files or ():
        if not Path(str(distribution.locate_file(file))).exists():
            yield f"{name} is installed only in part: {file} is missing"
            return


def unmet(found: dict[str, Distribution], without: set[str]) -> Iterator[str]:
    """Requirements of the installed packages, extras followed, that no installed package satisfies."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return  # a set without `packaging` is no engine; its versions were checked all the same
    queue: list[tuple[str, frozenset[str]]] = [(name, frozenset()) for name in found]
    seen = set(queue)
    while queue:
        name, extras = queue.pop()
        for text in found[name].requires or ():
            wanted = Requirement(text)
            marker: Any = wanted.marker
            if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
                continue
            target = normal(wanted.name)
            if target in without:
                continue
            if target not in found:
                yield f"{name} needs {wanted}, which is not in the lock file"
            elif not wanted.specifier.contains(found[target].version, prereleases=True):
                yield f"{name} needs {wanted}, and the lock file has {found[target].version}"
            elif wanted.extras and (key := (target, frozenset(wanted.extras))) not in seen:
                seen.add(key)
                queue.append(key)


def main() -> int:
    lock = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = list(problems(lock["pins"], set(lock["without"])))
    for line in dict.fromkeys(found):
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
