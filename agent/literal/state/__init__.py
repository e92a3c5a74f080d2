"""What is known of the run so far, and how things stand with one goal."""
