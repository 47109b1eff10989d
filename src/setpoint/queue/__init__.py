"""Which key is due: a work queue for controllers, with or without the rest of Setpoint."""

from setpoint.queue.backoff import delay_after
from setpoint.queue.workqueue import LOW_PRIORITY, QueueStats, Taken, WorkQueue

__all__ = ["LOW_PRIORITY", "QueueStats", "Taken", "WorkQueue", "delay_after"]
