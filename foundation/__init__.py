"""The ground floor that `agent` and `serverctl` stand on; it knows neither agents nor servers."""
