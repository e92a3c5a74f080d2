"""The accessibility tree (AT-SPI), read over D-Bus alone. It knows no display system: windows come by the protocol."""
