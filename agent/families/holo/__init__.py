"""What the models of H Company share: their tools, and how they are asked where something is."""
