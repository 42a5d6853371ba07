"""HTTP on the daemon's own socket, and the client of it."""
