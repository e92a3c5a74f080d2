"""What is in this machine: cards, accelerators, processor, memory. Parsed from tools' output, never invented."""
