"""What is done to a completion after the model: named functions from text to text, applied in order."""

from laguna_daemon.completion.filters.brackets import without_doubled_closers
from laguna_daemon.completion.filters.construct import until_end_of_construct, without_unfinished_line
from laguna_daemon.completion.filters.fences import (
    without_echo,
    without_fence,
    without_marker,
    without_preamble,
    without_prose,
)
from laguna_daemon.completion.filters.indentation import (
    step_of,
    with_indentation_of_file,
    without_blanks_before_end,
    without_doubled_indentation,
)
from laguna_daemon.completion.filters.repetition import (
    without_line_above,
    without_loops,
    without_stutter,
    without_suffix,
)
from laguna_daemon.completion.filters.site import Filter, Site

PIPELINE: list[Filter] = [
    without_preamble,
    without_fence,
    without_prose,
    without_marker,
    without_echo,
    without_doubled_indentation,
    with_indentation_of_file,
    without_unfinished_line,
    without_loops,
    without_stutter,
    until_end_of_construct,
    without_line_above,
    without_suffix,
    without_doubled_closers,
    without_blanks_before_end,
]


def apply(text: str, site: Site, pipeline: list[Filter] | None = None) -> str:
    """`text` after every filter of `pipeline` (the standard one by default)."""
    for each in PIPELINE if pipeline is None else pipeline:
        text = each(text, site)
    return text


__all__ = ["PIPELINE", "Filter", "Site", "apply", "step_of"]
