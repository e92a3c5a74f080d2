"""UI-TARS-2 and the Seed models: functions in XML, screenshots as tool results."""
