"""Where objects and their history are kept: one protocol, in memory or in SQLite."""
