"""Edits: shown first, applied as one step to undo, refused when they no longer fit."""

from __future__ import annotations

import pytest

WISH = "Give it an off switch"
ANSWER = """\
Here it is.

<<<<<<< SEARCH lamp.py
class Lamp:
=======
class Lamp:
    \"\"\"A lamp.\"\"\"

>>>>>>> REPLACE
<<<<<<< SEARCH lamp.py
        self.lit = True
=======
        self.lit = True

    def off(self):
        self.lit = False
>>>>>>> REPLACE
<<<<<<< CREATE switch.py
SWITCH = 1
>>>>>>> END
"""
AFTER = '''\
class Lamp:
    """A lamp."""

    def __init__(self):
        self.lit = False

    def on(self):
        self.lit = True

    def off(self):
        self.lit = False
'''


@pytest.fixture
def nvim(edit, desk, lamp):
    """An editor that shows a proposed edit."""
    desk.probe.answers({"when": WISH, "answer": ANSWER})
    nvim = edit(lamp)
    nvim.command(f"Laguna refactor {WISH}")
    nvim.shows("Proposed edit: 2 files, +6 -0")
    return nvim


def text(nvim, path) -> str:
    get = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, false), '\\n') .. '\\n'"
    return nvim.lua(get, str(path))


def test_the_preview_is_a_diff_and_changes_nothing(nvim, lamp):
    nvim.shows('+    """A lamp."""')
    shown = nvim.buffer()
    for line in ("--- lamp.py", "+    def off(self):", "+++ switch.py (new file)", "+SWITCH = 1"):
        assert line in shown
    assert text(nvim, lamp) == lamp.read_text()
    assert not (lamp.parent / "switch.py").exists()


def test_it_is_applied_and_one_undo_takes_it_back(nvim, lamp):
    before = lamp.read_text()
    nvim.keys("a")
    nvim.until(lambda: text(nvim, lamp) == AFTER, "the edit")
    assert text(nvim, lamp.parent / "switch.py") == "SWITCH = 1\n"
    assert lamp.read_text() == before, "nothing is written unasked"
    nvim.lua("vim.api.nvim_set_current_win(vim.fn.bufwinid(...))", str(lamp))
    nvim.keys("u")
    nvim.until(lambda: text(nvim, lamp) == before, "the text before")
    nvim.keys("<C-r>")
    nvim.until(lambda: text(nvim, lamp) == AFTER, "the edit again")
    nvim.command("wall")
    assert lamp.read_text() == AFTER
    assert (lamp.parent / "switch.py").read_text() == "SWITCH = 1\n"


def test_undo_of_all_files(nvim, lamp):
    before = lamp.read_text()
    nvim.keys("a")
    nvim.until(lambda: text(nvim, lamp) == AFTER, "the edit")
    nvim.command("Laguna undo")
    assert text(nvim, lamp) == before
    assert text(nvim, lamp.parent / "switch.py") == "\n"


def test_it_can_be_discarded(nvim, lamp):
    nvim.keys("q")
    nvim.until(lambda: "Proposed edit: 2" not in nvim.text(), "no preview")
    assert text(nvim, lamp) == lamp.read_text()
    assert "no proposed edit" in nvim.command("Laguna apply")


def test_a_text_that_changed_meanwhile_is_left_alone(nvim, lamp):
    nvim.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr(...), 0, 0, false, { '# mine' })", str(lamp))
    nvim.keys("a")
    nvim.shows("changed since this edit was made")
    assert text(nvim, lamp) == "# mine\n" + lamp.read_text()
    assert not (lamp.parent / "switch.py").exists()


def test_an_answer_that_does_not_fit_says_so(edit, desk, lamp):
    desk.probe.answers({"when": WISH, "answer": ANSWER.replace("class Lamp:\n=", "class Candle:\n=")})
    nvim = edit(lamp)
    nvim.command(f"Laguna refactor {WISH}")
    nvim.shows("Nothing was changed")
    assert text(nvim, lamp) == lamp.read_text()


def test_fix_sends_what_is_wrong(edit, desk, lamp):
    desk.probe.answers({"when": "lit is not a word", "answer": ANSWER})
    nvim = edit(lamp)
    nvim.lua("""
        vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {
          { lnum = 5, col = 8, message = 'lit is not a word', source = 'spell', severity = 1 },
        })
    """)
    nvim.command("5,6Laguna fix")
    nvim.shows("Fix the problem in lamp.py:5-6")
    nvim.shows("Proposed edit")
