"""Cloud peers: a client for each one's own API, through its maker's public library, imported when it is asked."""
