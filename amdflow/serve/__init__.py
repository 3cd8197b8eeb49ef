"""Serve a model over an OpenAI-compatible endpoint, checked before it starts and proven by a real answer."""
