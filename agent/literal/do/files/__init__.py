"""Goals about files: open them, write them, and make, rename, copy, move and trash them."""
