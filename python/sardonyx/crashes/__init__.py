"""Cutting the power of programs over designs: runs, plans of runs, all orders, replays."""
