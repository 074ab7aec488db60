"""The papers: a folder each, with its claims, its reproduction and the figures that stand for its.

``sardonyx.studies`` finds them.
"""
