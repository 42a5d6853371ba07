"""What a repository is to a language model: files, tokens, one frozen prefix, and what changed since."""
