"""Any instructed model, with eyes or without: JSON actions on numbered elements, in a format of our own."""
