#!/usr/bin/env python3
"""Verifies an export of a trail, by AUDIT.md alone: verify_export.py ENTRIES MANIFEST"""

import base64
import hashlib
import json
import sys

FIELDS = """number written source kind record operation step label stream state_before state_after attempt token holder
db_user note note_by forgettable outcome_kind outcome_hash hash_before""".split()
BYTES = {"record", "step", "stream", "outcome_hash", "hash_before"}
class Divergence(Exception): pass


def check(holds, where):
    if not holds:
        raise Divergence(where)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def encoded(value):
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return b"\1" + value.to_bytes(8, "big", signed=True)
    content = value.encode() if isinstance(value, str) else value
    return b"\2" + len(content).to_bytes(8, "big") + content


def leaf(entry):
    fields = b""
    for field in FIELDS:
        is_hex = field in BYTES and entry[field] is not None
        fields += encoded(bytes.fromhex(entry[field]) if is_hex else entry[field])
    return sha256(b"\0", fields)


def root(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256()
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1", root(leaves[:left]), root(leaves[left:]))


def seal_hash(seal):
    hashes = bytes.fromhex(seal["root"]), bytes.fromhex(seal["previous"])
    fields = [seal["format"], seal["batch"], seal["entries"], *hashes, seal["sealed"]]
    return sha256(b"\2", *map(encoded, fields))


def verify(lines, manifest):
    whole, leaves, before = hashlib.sha256(), [], None
    batches = entries = gone = may_be_gone = is_part = 0
    for line in lines:
        whole.update(line)
        row = json.loads(line)
        seal = row.get("seal")
        if seal is None:
            check(row["place"] == len(leaves), f"place of entry {row['number']}")
            if row["source"] == "pruned":
                gone = row["batch"]
            else:
                check(leaf(row).hex() == row["leaf"], f"content of entry {row['number']}")
            leaves.append(bytes.fromhex(row["leaf"]))
            if row["source"] == "pruning":
                may_be_gone = max(may_be_gone, json.loads(row["note"])["to"])
            continue
        batch = f"batch {seal['batch']}"
        if leaves or not seal["entries"]:
            check(seal["entries"] == len(leaves), f"gap in {batch}")
            check(root(leaves).hex() == seal["root"], f"content of {batch}")
        else:
            gone = seal["batch"]
        check(seal_hash(seal).hex() == seal["hash"], f"seal of {batch}")
        if before is not None:
            check(seal["previous"] == before["hash"], f"link of {batch}")
            check(seal["batch"] == before["batch"] + 1, f"gap before {batch}")
        is_part = is_part or before is None and seal["batch"] > 1
        before, batches, entries, leaves = seal, batches + 1, entries + len(leaves), []
    check(not leaves, "entries without a seal")
    anchor = (manifest["anchor"] or "- 0 - -").split()
    if is_part or before is None or before["batch"] < int(anchor[1]):
        may_be_gone = manifest["pruned"]
    check(gone <= may_be_gone, f"batch {gone} is pruned, and no entry says so")
    check(whole.hexdigest() == manifest["sha256"], "the manifest is that of another export")
    check((batches, entries) == (manifest["batches"], manifest["entries"]), "the counts differ")
    if before is not None and before["batch"] == int(anchor[1]):
        check(base64.b64decode(anchor[2]).hex() == before["hash"], "the anchor is that of another chain")
    return f"{entries} entries in {batches} batches hold"


with open(sys.argv[1], "rb") as lines, open(sys.argv[2], "rb") as manifest:
    try:
        print(verify(lines, json.load(manifest)))
    except Divergence as divergence:
        sys.exit(f"divergence: {divergence}")
