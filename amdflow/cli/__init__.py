"""One module a command: parse, call the domain function of the same name, render."""
