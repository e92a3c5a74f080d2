"""The builders of the grammar: they make goals of the arguments that an entry of the table gives them."""
