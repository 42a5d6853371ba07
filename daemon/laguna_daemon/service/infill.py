"""The prompt of a completion: by infill tokens where the profile names them, in words otherwise.

What changes least stands first, and what stands behind the cursor before what stands in front of it: a keystroke
changes such a prompt at its end alone, and the engine computes the last block anew and nothing else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import numpy as np

from laguna_context import frames
from laguna_context.prompt import Prompt
from laguna_context.secrets import redact
from laguna_context.tokens import Ids
from laguna_daemon.completion import window
from laguna_daemon.config import CompletionSettings
from laguna_daemon.engine.profile import FimSection
from laguna_daemon.errors import OverBudget
from laguna_daemon.schemas import CompleteRequest, Snippet
from laguna_daemon.service.instructions import COMPLETE, CURSOR
from laguna_daemon.service.materials import Materials

_log = logging.getLogger(__name__)
_SLOTS = re.compile(r"(\{prefix\}|\{suffix\})")
_COMMENTS = {
    "python": "#", "ruby": "#", "shellscript": "#", "yaml": "#", "toml": "#", "perl": "#", "r": "#", "makefile": "#",
    "lua": "--", "sql": "--", "haskell": "--", "ada": "--", "lisp": ";;", "clojure": ";;", "latex": "%", "erlang": "%",
}  # fmt: skip


def build(materials: Materials, request: CompleteRequest, settings: CompletionSettings, last: Prompt | None) -> Ids:
    """The ids of a completion's prompt.

    ``last`` is the latest prompt of the repository whose prefix the engine holds, None for a local completion.
    Raises OverBudget if even a window of a few lines does not fit.
    """
    chars = settings.prefix_chars, settings.suffix_chars
    while True:
        ids = _once(materials, _windowed(request, *chars), last)
        if len(ids) <= materials.budget.prompt:
            return ids
        if max(chars) < 200:
            raise OverBudget("The completion does not fit the model's context.", "Use a profile with a larger one.")
        chars = chars[0] // 2, chars[1] // 2


def withheld(fim: FimSection | None, request: CompleteRequest) -> str:
    """White space from the last line with text up to the cursor, which a plain continuation is asked without.

    Tokenizers join line ends and indentation with each other and with the word behind them, so a text that ends in the
    middle of it goes on in a way the model has never seen. It says all of it itself, and its indentation shows whether
    it goes on where the cursor is. A form made for infill says so by its tokens.
    """
    if fim is None or fim.form != "{prefix}":
        return ""
    blank = request.prefix[len(request.prefix.rstrip()) :]
    return blank if "\n" in blank and len(blank) < len(request.prefix) else ""


def _windowed(request: CompleteRequest, before: int, behind: int) -> CompleteRequest:
    """The request with the text that is sent: anchored, and without secrets. Snippets get half as much as the file."""
    snippets: list[Snippet] = []
    room = (before + behind) // 2
    for each in request.snippets:
        if len(each.text) <= room:
            snippets.append(each)
            room -= len(each.text)
    return request.model_copy(
        update={
            "prefix": redact(window.tail(request.prefix, before), request.path).text,
            "suffix": redact(window.head(request.suffix, behind), request.path).text,
            "snippets": snippets,
        }
    )


def _once(materials: Materials, request: CompleteRequest, last: Prompt | None) -> Ids:
    fim = materials.launch.profile.fim
    if last is not None:
        return _behind_repository(materials, request, last)
    if fim is not None:
        ids = _by_tokens(materials, request, fim)
        if ids is not None:
            return ids
    text = "".join([*_extras(request.snippets), frames.task(_words(request))])
    return np.concatenate(
        [materials.template.open_first(False), materials.typed.encode(text), materials.template.tail(False)]
    )


def _behind_repository(materials: Materials, request: CompleteRequest, last: Prompt) -> Ids:
    """The repository as the engine holds it, then the window in the task."""
    held = last.ids[: last.prefix_tokens + last.overlay_tokens]
    task = materials.typed.encode(frames.task(_words(request)))
    return np.concatenate([held, task, materials.template.tail(False)])


def _words(request: CompleteRequest) -> str:
    what = f"the file {request.path}" + (f" ({request.language})" if request.language else "")
    return COMPLETE.format(what=what, marker=CURSOR, prefix=request.prefix, suffix=request.suffix)


def _extras(snippets: Sequence[Snippet]) -> list[str]:
    return [frames.extra(each.path, each.text).text for each in snippets]


def _by_tokens(materials: Materials, request: CompleteRequest, fim: FimSection) -> Ids | None:
    """The profile's form filled in; None, with a word in the log, if the tokenizer lacks a token of it."""
    mark = _COMMENTS.get(request.language, "//")
    files = "".join(f"{mark} {each.path}\n{each.text}\n\n" for each in request.snippets)
    prefix = request.prefix.removesuffix(withheld(fim, request))
    texts = {"{prefix}": f"{files}{mark} {request.path}\n{prefix}", "{suffix}": request.suffix}
    parts: list[Ids] = []
    for piece in _SLOTS.split(fim.form):
        if piece in texts:
            parts.append(materials.typed.encode(texts[piece]))
        elif piece:
            if not _is_control(materials, piece):
                _log.warning("the tokenizer has no %s: completions are asked for in words", piece)
                return None
            parts.append(materials.typed.controlled(piece))
    return np.concatenate(parts)


def _is_control(materials: Materials, text: str) -> bool:
    """Whether a text is nothing but control tokens."""
    rest = text
    for control in sorted(materials.tokenizer.controls, key=len, reverse=True):
        rest = rest.replace(control, "")
    return not rest
