"""The dialect: window clauses, scopes, and binding a text to a plan."""
