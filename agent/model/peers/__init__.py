"""Cloud providers: a client for the own API of each, through the vendor's public library, imported at first use."""
