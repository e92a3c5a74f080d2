"""The HTML report of a run: one file that shows every step, asks the network for nothing and runs only our own code."""

from agent.record.report.page import Report, write_report

__all__ = ["Report", "write_report"]
