"""Learning by several processes: each owns some of the entities (docs/scale.md)."""
