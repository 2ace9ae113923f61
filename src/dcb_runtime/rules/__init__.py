"""The pure rules: values in, values or coded errors out. No I/O, no clock, no randomness but through arguments."""
