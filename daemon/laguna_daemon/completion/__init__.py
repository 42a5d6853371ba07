"""Inline completion: one stage per module, from the keystroke to the text that is shown."""
