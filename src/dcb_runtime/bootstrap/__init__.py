"""The Bootstrap: coordinates the one import of a service, from plan to READY, slice by slice."""
