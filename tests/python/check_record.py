"""Checks that RECORD lists the files of a wheel with their sizes and hashes, and that programs can be started: check_record.py WHEEL"""
import base64
import csv
import hashlib
import io
import sys
import zipfile

archive = zipfile.ZipFile(sys.argv[1])
record = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
listed = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
assert sorted(listed) == sorted(archive.namelist()), set(listed) ^ set(archive.namelist())
for name, (digest, size) in listed.items():
    data = archive.read(name)
    right = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    assert name == record or (digest, int(size)) == (right, len(data)), name
programs = [name for name in listed if name.startswith("cleat/_native/bin/")]
assert programs and all(archive.getinfo(name).external_attr >> 16 & 0o111 == 0o111 for name in programs), programs
