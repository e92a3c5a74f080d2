"""Another machine's desktop, through the HTTP server that runs in OSWorld's virtual machines."""
