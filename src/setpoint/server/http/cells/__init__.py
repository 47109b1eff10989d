"""The cells of ``kubectl get`` for the built-in kinds, a module for each family of them."""
