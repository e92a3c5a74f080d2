"""Commands that send requests: measure, tune, answer files of requests."""
