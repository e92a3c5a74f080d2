"""Many screenshots and instructions from one file, answers into another: resumable, and with bounded memory."""
