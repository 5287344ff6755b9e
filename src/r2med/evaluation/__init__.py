"""What a system is worth, and which differences are chance."""
