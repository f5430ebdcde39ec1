"""Rank divergence and uniformity: what differs between ranks, and what is the same on all of them."""
