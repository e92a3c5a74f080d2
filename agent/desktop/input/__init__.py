"""Mouse and keyboard on any desktop: actions as single events, stuck keys, and the detection of a takeover."""
