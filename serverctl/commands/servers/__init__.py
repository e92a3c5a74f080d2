"""Commands about running servers: start, watch, explain and stop them."""
