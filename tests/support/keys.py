"""A key that is easy to find wherever it should not be."""

KEY = "sk-marked-3f9a1c-never-shown"
