"""What can go wrong between a repository and a prompt."""

from __future__ import annotations


class ContextError(Exception):
    """An error a user can act on: `what` happened and means, and `advice` on what to do."""

    def __init__(self, what: str, advice: str = "") -> None:
        self.what = what
        self.advice = advice
        super().__init__(what, advice)

    def __str__(self) -> str:
        return f"{self.what} {self.advice}".rstrip()


class NotARepository(ContextError):
    """The folder is in no git repository."""


class UnsafeRepository(ContextError):
    """git or we refuse the repository because of who owns it or how it is laid out."""


class GitUnavailable(ContextError):
    """git is not installed, or gave no answer in time."""


class GitFailed(ContextError):
    """git ran and refused; `code` is its exit status."""

    def __init__(self, what: str, advice: str = "", *, code: int = 0) -> None:
        super().__init__(what, advice)
        self.code = code


class RootRefused(ContextError):
    """The folder may not be a workspace: it is missing, the home folder or `/`."""
