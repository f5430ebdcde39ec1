"""The C ABI from Python: its structures, and a rank's program in them."""
