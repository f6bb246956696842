"""Tables and pictures of what was computed."""
