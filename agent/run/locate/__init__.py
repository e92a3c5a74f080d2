"""Where the point goes that a model named: closer looks, and doubts."""
