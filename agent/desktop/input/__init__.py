"""Mouse and keyboard of any desktop: actions as single events, keys left pressed, and the person taking over."""
