"""dcb-runtime: an event store for Dynamic Consistency Boundaries on Cloudflare Durable Objects."""

__version__ = "0.1.0"
