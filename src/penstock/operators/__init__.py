"""The papers' algorithms: pure, picklable, no I/O, no clock; engines host them."""
