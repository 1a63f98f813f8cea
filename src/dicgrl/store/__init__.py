"""Where learners live: the only room that knows names of files in a run folder."""
