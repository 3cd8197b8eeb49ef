"""Inline PTX: read, understood instruction by instruction, written anew as calls of the compatibility headers."""
