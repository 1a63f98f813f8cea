"""Jobs: streams learned part by part, merged graphs, sweeps."""
