"""The ports on plain Python: ``sqlite3``, a clock that tests move, objects in one process."""
