#!/usr/bin/env python3
"""Writes the test vectors beside this file: `python3 vectors/write.py`. Or into another folder: `python3 vectors/write.py FOLDER`.

What an engine should put out is worked out here from the semantics page alone: frames are built, checksums summed, and hashes computed by
the code of this folder, which shares nothing with any engine. `docs/vectors.md` tells the format.
"""

import json
import pathlib
import sys

import events
import flows
import packets
import sequences
import shared
import values
from kit import HERE, VECTORS

assert all((events, flows, packets, sequences, shared, values))
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE
for old in folder.glob("*.json"):
    if old.name != "base.json" and old.stem not in VECTORS:
        old.unlink()
for name, made in VECTORS.items():
    if made["expected"].pop("sent_is_left_out", False):
        del made["expected"]["sent"]
    (folder / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")
print(f"{len(VECTORS)} vectors")
