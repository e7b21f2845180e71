"""What is shown of graphs at work: one model of a drawing, and what writes it."""
