"""The desktop of a Wayland compositor that lets programs see and touch it by wlroots' protocols: sway and its kin."""
