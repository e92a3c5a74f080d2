"""What shows that a run did what was asked: claims held against evidence, and undoing what a receipt tells."""
