"""Chooses the next action for a goal, and decides whether the goal is reached."""
