"""What the service says of a path, in words."""

from __future__ import annotations

from laguna_context.manifest import Why

_TIERS = {
    "full": "in the prompt with its whole text, {tokens:,} tokens",
    "overlay": "in the prompt with its whole text, behind the snapshot",
    "deleted": "in the prompt as deleted",
    "path": "in the prompt by its path alone",
    "folder": "in the prompt as one of its folder's files, counted and not named",
}


def why_text(why: Why) -> str:
    """Why a path is in the prompt or not, in two or three lines."""
    state = _TIERS.get(why.tier, "not in the prompt").format(tokens=why.tokens)
    lines = [f"{why.path}: {state}"]
    if why.reason:
        lines.append(f"  {why.reason}")
    if why.rule:
        place = f"{why.source}:{why.line}" if why.line else why.source
        lines.append(f"  rule {why.rule} in {place}")
    return "\n".join(lines)
