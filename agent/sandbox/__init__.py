"""Disposable desktops, in which a run cannot touch the person's own desktop."""
