"""What people read of an answer, a module for each command: ``tell`` prints it; where there is a
report, ``FILE`` is the answer's file beside it, ``groups`` its sections and ``report`` writes it.
"""
