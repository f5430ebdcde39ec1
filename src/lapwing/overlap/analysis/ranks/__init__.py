"""What differs between ranks, and what all of them do alike."""
