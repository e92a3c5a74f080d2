"""ui_tars_1_5: see `family.toml`."""
