"""Run folders: the only room that knows the names of files in them."""
