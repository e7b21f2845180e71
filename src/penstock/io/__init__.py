"""Sources and sinks of the in-process engine."""
