"""Software pipelining: a loop's next iteration starts while this iteration's transfer is in flight; prologue, lookahead and
double buffers."""
