"""One module per subcommand of `mai-agent`, each imported only when it is asked for."""
