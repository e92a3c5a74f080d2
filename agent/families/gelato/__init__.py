"""Gelato: finds places."""
