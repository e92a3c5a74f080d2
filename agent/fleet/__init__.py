"""Many tasks on many throw-away desktops of one machine: each task is an ordinary run in a process of its own."""
