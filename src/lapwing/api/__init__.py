"""A nest as its user has it: choices, calls, runs in memory and out of core, and the check against the plain loop."""
