"""What Kubernetes fills in where nothing was said; ``table.py`` says which kind by what."""
