"""One module per thing an editor can ask for."""
