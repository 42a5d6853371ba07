"""Edits of many files that are applied all together or not at all.

``parse`` reads a model's answer, ``plan`` computes every file in memory or says why not, ``apply`` writes the set,
``undo`` takes it back, ``recover`` ends what a crash interrupted. ``text_edits`` is the form for an editor,
``to_patch`` the one for git, ``render`` and ``summary`` those for a person. Nothing here knows models, editors or
transports.
"""

from laguna_daemon.edits.blocks import (
    INSTRUCTIONS,
    Began,
    Block,
    Create,
    Delete,
    Event,
    Problem,
    Prose,
    Rename,
    Replace,
    SetMode,
)
from laguna_daemon.edits.changes import ChangeSet, FileChange, FileState, Refusal, Refusals
from laguna_daemon.edits.diff import count, headline, render, summary
from laguna_daemon.edits.journal import JournalBroken, JournalBusy, Record
from laguna_daemon.edits.parser import Parsed, Parser, parse
from laguna_daemon.edits.patch import to_patch
from laguna_daemon.edits.plan import Limits, plan
from laguna_daemon.edits.safety import PathRefused
from laguna_daemon.edits.self_starting import self_starting
from laguna_daemon.edits.textedits import FileEdits, Position, TextEdit, Units, text_edits
from laguna_daemon.edits.transaction import FilesChanged, Recovered, WriteFailed, apply, recover
from laguna_daemon.edits.undo import UnknownEdit, as_changes, find, history, undo, undone
from laguna_daemon.edits.worktree import dirty, object_format
from laguna_daemon.errors import EditsRefused

__all__ = [
    "INSTRUCTIONS",
    "Began",
    "Block",
    "ChangeSet",
    "Create",
    "Delete",
    "EditsRefused",
    "Event",
    "FileChange",
    "FileEdits",
    "FileState",
    "FilesChanged",
    "JournalBroken",
    "JournalBusy",
    "Limits",
    "Parsed",
    "Parser",
    "PathRefused",
    "Position",
    "Problem",
    "Prose",
    "Record",
    "Recovered",
    "Refusal",
    "Refusals",
    "Rename",
    "Replace",
    "SetMode",
    "TextEdit",
    "Units",
    "UnknownEdit",
    "WriteFailed",
    "apply",
    "as_changes",
    "count",
    "dirty",
    "find",
    "headline",
    "history",
    "object_format",
    "parse",
    "plan",
    "recover",
    "render",
    "self_starting",
    "summary",
    "text_edits",
    "to_patch",
    "undo",
    "undone",
]
