"""Span hooks around command handling: observation that can never change what a command does."""
