"""The model folders: are they there, are they what the profile means, do target and draft belong together?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from laguna_daemon.engine.checks.finding import Finding
from laguna_daemon.engine.checks.pairs import DISK_BYTES, GOOD_PAIRS, MIXED_PRECISION, precision
from laguna_daemon.engine.checks.situation import Situation
from laguna_daemon.engine.setup.storage import gigabytes

_LITTLE_DISK = 1_000_000_000


def disk(situation: Situation) -> Iterator[Finding]:
    """Are the checkpoints there, and if not, is there room for them?"""
    missing = [
        found for found in (situation.model, situation.draft) if found and not found.there and found.section.repository
    ]
    if missing and not situation.dummy:
        size = sum(DISK_BYTES.get(found.section.repository.rpartition("/")[2], 0) for found in missing)
        names = " and ".join(found.section.name for found in missing)
        takes = f" and take {gigabytes(size)} of disk space" if size else ""
        full = size > situation.free_disk
        yield Finding(
            "disk",
            "error",
            f"The checkpoints {names} are not there{takes}; {gigabytes(situation.free_disk)} are free.",
            "They do not fit." if full else "There is nothing to load.",
            "Make room (laguna-daemon gc), or set LAGUNA_DATA_DIR to a larger disk."
            if full
            else f"Download them: laguna-daemon engine download {situation.profile.name}, or name folders in "
            "engine.model and engine.draft.",
        )
    elif situation.free_disk < _LITTLE_DISK:
        yield Finding(
            "disk",
            "warning",
            f"Only {gigabytes(situation.free_disk)} of disk space are free.",
            "Compiled kernels, logs and token ids need some; a full disk ends the engine.",
            "Make room; laguna-daemon gc shows what the product holds.",
        )


def architecture(situation: Situation) -> Iterator[Finding]:
    """Is the model what the profile means, and can this engine run it?"""
    model = situation.model
    if model is None or not model.there:
        return
    name = _architecture(model.config)
    if situation.profile.kind == "cpu" and not situation.custom and name.startswith("Laguna"):
        yield Finding(
            "architecture",
            "error",
            f"{model.path} holds {name}.",
            "vLLM's CPU backend cannot run Laguna (its router is a sigmoid): it would load and then fail.",
            "Use a GPU profile, or another model on the CPU.",
        )
    elif model.section.architecture and name != model.section.architecture:
        yield Finding(
            "architecture",
            "warning",
            f"{model.path} holds {name or 'an unnamed architecture'}; the profile is made for "
            f"{model.section.architecture}.",
            "Flags, context and budgets of the profile may not fit it.",
            "Correct engine.model, or make a profile of your own for it (docs/profiles.md).",
        )
    longest = int(_text(model.config).get("max_position_embeddings") or 0)
    if longest and situation.context > longest:
        yield Finding(
            "architecture",
            "error",
            f"The context asked for is {situation.context:,} tokens; the model was made for {longest:,}.",
            "The engine refuses that after it has read the configuration.",
            f"Set max-model-len and budget.context to at most {longest}.",
        )


def quantisation(situation: Situation) -> Iterator[Finding]:
    """Does the checkpoint have the precision that the profile's memory is reckoned with?"""
    model = situation.model
    if model is None or not model.there or precision(model.section.repository) != "INT4":
        return
    widths = _widths(model.config)
    if widths == {4}:
        return
    if not widths:
        what = f"{model.path} is not quantised."
    else:
        what = f"{model.path} is quantised to {', '.join(map(str, sorted(widths)))} bits in its parts."
    yield Finding(
        "quantisation",
        "error",
        what,
        f"The profile {situation.profile.name} is reckoned for INT4 (70 GiB with the draft): this one takes far more "
        "memory. The repository's main branch became such a mixed-precision checkpoint.",
        f"Download the pinned revision: laguna-daemon engine download {situation.profile.name}",
    )


def pins(situation: Situation) -> Iterator[Finding]:
    """Is each checkpoint at a known revision? A branch can become another model overnight."""
    for found in (situation.model, situation.draft):
        if found is None or not found.section.repository:
            continue
        if found.origin and found.origin.revision.startswith(MIXED_PRECISION):
            yield Finding(
                "pins",
                "error",
                f"{found.path} is {found.origin.repository} at {found.origin.revision[:12]}.",
                "That is the 99.7 GB mixed-precision checkpoint without scales for the KV cache, which does not fit "
                "four 24 GB cards.",
                f"Move it away and download the pinned one: laguna-daemon engine download {situation.profile.name}",
            )
        elif not found.section.revision:
            yield Finding(
                "pins",
                "warning",
                f"The profile {situation.profile.name} pins no revision of {found.section.repository}.",
                "A branch can become another model overnight; INT4's main became one that does not fit 24 GB cards.",
                'Add revision = "<commit>" under [model] of the profile.',
            )
        elif found.origin and found.origin.revision != found.section.revision:
            yield Finding(
                "pins",
                "warning",
                f"{found.path} is at revision {found.origin.revision[:12]}; the profile pins "
                f"{found.section.revision[:12]}.",
                "It was not tested with this profile.",
                f"Move it away and run laguna-daemon engine download {situation.profile.name}",
            )


def pair(situation: Situation) -> Iterator[Finding]:
    """Do target and draft belong together? A mismatched pair loads, runs, and accepts nothing of the draft."""
    model, draft = situation.model, situation.draft
    if model is None or draft is None or not draft.there:
        return
    fits = precision(model.repository) == precision(draft.repository)
    if not fits and model.there:
        yield _mismatch(
            f"The draft {draft.repository} was made for another precision than the target {model.repository}."
        )
        return
    if model.origin is None or draft.origin is None:
        if not situation.dummy:
            yield Finding(
                "pair",
                "warning",
                f"It is not known which revisions {model.path} and {draft.path} are.",
                "A draft of another revision loads and runs, and none of it is accepted: slower than without a draft.",
                "Watch the draft acceptance in laguna-daemon doctor, or download the pinned pair: laguna-daemon engine "
                f"download {situation.profile.name}",
            )
        return
    revisions = model.origin.revision, draft.origin.revision
    if GOOD_PAIRS.get(revisions[0]) == revisions[1]:
        return
    if revisions[0] in GOOD_PAIRS or revisions[1] in GOOD_PAIRS.values():
        yield _mismatch(
            f"The draft at {revisions[1][:12]} was not made for the target at {revisions[0][:12]}: "
            f"{_partner(*revisions)}."
        )
        return
    yield Finding(
        "pair",
        "warning",
        f"The target at {revisions[0][:12]} with the draft at {revisions[1][:12]} is a pair nobody has reported on.",
        "If they do not belong together, none of the draft is accepted: slower than without a draft.",
        "Watch the draft acceptance in laguna-daemon doctor.",
    )


def _partner(target: str, draft: str) -> str:
    if target in GOOD_PAIRS:
        return f"that target goes with {GOOD_PAIRS[target][:12]}"
    partner = next(known for known, other in GOOD_PAIRS.items() if other == draft)
    return f"that draft goes with {partner[:12]}"


def _mismatch(what: str) -> Finding:
    return Finding(
        "pair",
        "error",
        what,
        "Such a pair loads and runs, and accepts 0% of the draft: slower than no draft at all.",
        "Download the pair that the profile pins (laguna-daemon engine download), or use a profile without draft.",
    )


def draft_layers(situation: Situation) -> Iterator[Finding]:
    """Was the draft built for a target of this shape?"""
    model, draft = situation.model, situation.draft
    if model is None or draft is None or not (model.there and draft.there):
        return
    target, small = _text(model.config), _text(draft.config)
    layers = (small.get("dflash_config") or {}).get("num_target_layers")
    wrong = [
        f"{what}: {mine} and {theirs}"
        for what, mine, theirs in (
            ("layers it reads", layers, target.get("num_hidden_layers")),
            ("vocabulary", small.get("vocab_size"), target.get("vocab_size")),
            ("width", small.get("hidden_size"), target.get("hidden_size")),
        )
        if mine and theirs and mine != theirs
    ]
    if wrong:
        yield Finding(
            "draft-layers",
            "error",
            f"The draft was built for another target ({'; '.join(wrong)}).",
            "The engine would stop while it sets up the draft, minutes into the start.",
            "Use the pair of checkpoints that the profile pins (engine.model, engine.draft).",
        )


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    found = config.get("text_config", config)
    return found if isinstance(found, Mapping) else {}


def _architecture(config: Mapping[str, Any]) -> str:
    return str((config.get("architectures") or [""])[0])


def _widths(config: Mapping[str, Any]) -> set[int]:
    """Bits of the quantised parts of a checkpoint, by its own words."""
    found = config.get("quantization_config") or {}
    groups = (found.get("config_groups") or {}).values()
    bits = {int((group.get("weights") or {}).get("num_bits") or 0) for group in groups} - {0}
    if not bits and found.get("bits"):
        bits = {int(found["bits"])}
    return bits
