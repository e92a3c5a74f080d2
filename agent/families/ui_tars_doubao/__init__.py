"""Doubao 1.5 UI-TARS: UI-TARS 1.5 by API, with points in tags."""
