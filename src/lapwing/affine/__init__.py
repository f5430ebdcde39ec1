"""Integer sets: affine forms of symbols, sections of arrays, and isl."""
