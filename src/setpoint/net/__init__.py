"""The only folder that knows the HTTP library: sending, listening, and the certificates for both."""
