"""The Tag: one object a service and tag. It holds the tag's events with their payloads and serves them."""
