"""Answers a file of requests (screenshots and instructions): resumable, and with bounded memory."""
