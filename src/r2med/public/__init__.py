"""The functions that people call: in Python as `r2med.NAME`, and as commands, which are made from them.

A function turns names, paths and objects into values, and calls what computes. Its parameters are declared here once,
with their help and their flags. The modules are light: what computes is imported when a function is called.
"""
