"""The Allocator: one sequencer a service. It owns the lineage, the order and the index of all events."""
