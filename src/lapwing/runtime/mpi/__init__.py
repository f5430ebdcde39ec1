"""MPI as the runtime needs it: the communicator, arriving at meetings, patience, and how a run ends everywhere."""
