"""Queues between operators: append queues, and update queues that keep the newest value of every key."""
