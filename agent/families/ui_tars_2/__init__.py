"""UI-TARS-2 and the Seed models: functions in XML, screenshots as results of a tool."""
