"""Audit a dataset: can its labels be trusted?"""
