"""What `lapwing run` and `lapwing calibrate` do on every rank."""
