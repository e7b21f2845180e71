"""Order-insensitive select, project, duplicate elimination, union and row numbering."""
