"""A run as lines: for pipes, logs and terminals without the application, and the questions asked there."""
