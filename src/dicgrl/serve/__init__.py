"""A run as a service: HTTP, a page, and tools for agents; it stays fresh while facts arrive."""
