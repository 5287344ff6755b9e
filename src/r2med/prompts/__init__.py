"""What LLMs are asked: template files, and filling them so that they fit."""
