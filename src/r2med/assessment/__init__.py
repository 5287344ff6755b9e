"""What a label and an answer are worth."""
