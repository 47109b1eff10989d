"""Who has a say in a write: built-in rules, policies, webhooks.  ``admission.py`` puts them together."""
