"""Test programs for single functions of a migrated tree, so that what a person has to port can be worked on alone."""
