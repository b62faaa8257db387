"""A generated phone in text: apps, screens, elements with boxes, tasks, and their oracle."""
