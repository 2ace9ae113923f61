"""The entry Worker: authenticates, validates, routes, asks the objects and answers. Nothing here is durable."""
