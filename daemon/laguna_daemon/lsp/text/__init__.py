"""Documents as an editor sends them: exact text, positions, URIs."""
