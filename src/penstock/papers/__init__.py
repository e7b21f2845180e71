"""The experiments of the papers, as ratios and shapes: `penstock papers NAME`."""
