"""UI-Venus-2 on a desktop."""
