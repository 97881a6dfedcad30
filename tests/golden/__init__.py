"""Golden outputs: what the package answered before the code was moved, to be held against what it answers after.

    python -m tests.golden list                       the cases; an error if a public name has none
    python -m tests.golden compare --jobs 2           run all and show what changed; exit code 1 if anything did
    python -m tests.golden compare --only "audit/*" --except sentences
    python -m tests.golden record --jobs 2            run all, store what changed, and show it

**A commit that changes a golden moves no code, and says why the result changed.** A commit that moves code leaves
``outputs/`` as it is.

A case (``cases/``) is a function with fixed seeds that hands its results to an :class:`Output`. They are kept in parts,
so that it is seen what kind of thing changed:

- ``tables``: released and read tables: columns, dtypes, index and values (of long ones the first rows, and for every
  column figures that see each value and its place).
- ``guarantee``: status, epsilon, delta, relation, unit, event, and how many caveats.
- ``manifest``: settings and guarantee, without time, version and checksum.
- ``findings``: verdict, and of each finding in their order name, risk, interval, details, evidence and picture.
- ``numbers``: all other figures, defaults, names and exit codes.
- ``sentences``: all texts of four words or more, wherever they stood; in their place the other parts have
  ``<sentence>``. A change of English shows here and nowhere else.

``outputs/ROOM.json.gz`` has the parts but the last, ``outputs/ROOM.sentences.json`` the sentences, which Git can show,
and ``outputs/index.tsv`` a line for each part of each case, so that a diff of it names what a re-recording changed.
Recording leaves alone what compares equal.

Numbers compare with a relative tolerance of 1e-9: processors and linear algebra libraries add in different orders, so
that the last digits of a sum differ from machine to machine. What torch computes is compared with 1e-4: it uses single
precision, and another number of threads gives other last digits. ``--tolerance 0`` is for one machine.

What cannot be the same twice is not compared; the case names it with the reason (``unstable``), and ``list`` shows it.
Cases whose optional package or data sets (``OVERSAFE_DATA``) are missing are skipped, and their number is printed.
"""
