"""Screenshots in a terminal: sixels or kitty graphics if the terminal has them, coloured characters elsewhere.

textual-image finds out what the terminal has, and speaks kitty's protocol. The characters are drawn here: textual-image
has half cells only, and chafa.py 1.2 needs 0.3 s to load, has no octants, and never frees its canvases (200 KB a
picture).
"""
