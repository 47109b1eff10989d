"""Custom kinds: what a CustomResourceDefinition may say, and how objects of the kind that it defines are
treated.

``definition.py`` judges a definition, ``lifecycle.py`` says what becomes of it, ``resource.py`` makes of
each served version a ``Resource``.  The rest are the steps that an object goes through, in order:
``prune.py``, ``fill.py``, ``validate.py``, ``cel.py``.
"""
