"""What was recorded, judged again by today's hooks."""
