"""The plan for other supervisors and other machines: one module a format, all from the same plan and command."""
