"""The event log: all events of all services in position order, in the shared database."""
