"""Every compiled loop, by recursion. Only numba and numpy are imported here, and nothing here is imported before it is needed."""
