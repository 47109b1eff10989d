"""What objects go through between a request and the store: decode, default, admit, validate, store."""
