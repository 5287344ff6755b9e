"""What turns text into vectors, scores and text: encoders, cross-encoders, LLMs and their prompts."""
