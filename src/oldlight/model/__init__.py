"""What a problem is: a process, a channel, what the agent knows, and what it does with it."""
