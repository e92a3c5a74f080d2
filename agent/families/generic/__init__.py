"""Any instruction-tuned model, with or without vision: JSON actions on numbered elements, in our own format."""
