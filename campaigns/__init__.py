"""Faults made on purpose: kills, crashes, full disks, hostile files and tables, in great number.

A campaign is a module of this folder with

- a docstring whose first line says what it does,
- ``COUNT`` and ``SECONDS``: how many outcomes `make campaign` wants, and for how long at most,
- ``TESTED``: how many of the first cases `make test` tries,
- ``cases(seed)``: an iterator of cases, each plain data, the first of every kind early,
- ``try_one(case)``: what came of it, in a word; ``BROKEN: ...`` if it must not be so;
  a list of words if a case is several faults that count one by one.

A case that raises is broken too, and so is one that takes more than ``CPU_SECONDS`` (60 unless the
module says otherwise) of the processor.
"""
