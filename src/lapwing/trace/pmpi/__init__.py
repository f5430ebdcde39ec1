"""Any MPI program, traced through the profiling interface: a preloaded library (`cpp/`) and what is made of its recordings."""
