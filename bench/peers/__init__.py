"""Setpoint beside its peers: the same work, the same objects, in turn, and what each needed for it."""
