"""Reads the accessibility tree (AT-SPI) over D-Bus, on any display system: windows come through the protocol."""
