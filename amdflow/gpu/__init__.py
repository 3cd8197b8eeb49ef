"""Facts of each gfx target, and of the machine at hand."""
