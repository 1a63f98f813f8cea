"""Nightly work: facts are tested, learned, checked against gates, committed and reported."""
