"""Tables of others, read strictly: containers, files, and what is odd about them."""
