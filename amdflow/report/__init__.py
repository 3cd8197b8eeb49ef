"""HTML, Markdown, SARIF and GitHub annotations from manifests and findings. Pure functions over data; nothing here runs a tool."""
