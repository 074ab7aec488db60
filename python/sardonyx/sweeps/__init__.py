"""Sweeps: many points described by one file, run by any number of workers, merged into one table.

``plan`` reads the file, ``kinds`` says what a point asks, ``folder`` keeps what is done, ``work``
is a worker's process, ``local`` and ``hq`` give work out, ``run`` is the whole. Left out: how it
looks (``cli.sweep``, ``report.swept``).
"""
