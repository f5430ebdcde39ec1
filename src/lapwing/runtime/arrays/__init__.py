"""Arrays spread over ranks: where their parts lie, and how elements get there and back."""
