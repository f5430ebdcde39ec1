"""A loop's next iteration begun while this iteration's transfer is under way: prologue, lookahead and double buffers."""
