"""Progress calls: let MPI advance communication in flight."""
