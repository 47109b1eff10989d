"""Who owns which field of an object: managedFields, and server-side apply, which is decided by them."""
