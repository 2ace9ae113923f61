"""The one folder that touches the platform: it adapts workerd to the ports, and nothing else imports it."""
