"""Define what a task is, how it is kept and how it is graded."""
