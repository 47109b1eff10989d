"""What is wrong with objects of the built-in kinds.  ``table.py`` knows which rules a kind has."""
