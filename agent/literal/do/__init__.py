"""From a goal to the next action, with what shows that the goal is reached."""
