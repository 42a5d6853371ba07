"""Ghost text: from a request of the editor to what is shown, and back to what is remembered."""
