"""One module a subcommand of `mai-server`; each has `main(arguments) -> exit status`."""
