"""What the product does, free of transport: ask, complete, warm, conversations."""
