"""What tests of streaming queries need: input that is disordered, skewed and bursty.

`generators` makes packet traces as Arrow tables from a seed. `strategies` has hypothesis strategies for rows, windows,
arrival orders and batch boundaries; it needs the `hypothesis` package, which comes with `penstock[test]`.
"""
