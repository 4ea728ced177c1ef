#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A bill of materials in CycloneDX 1.5: what is linked into programs, by what package it came.

    sbom.py --version V [--static "-lzstd -lz"] PROGRAM...

Shared libraries are those that the program itself names (DT_NEEDED); of a program without any, those
of --static, as the linker finds them. Packages are Debian's. SOURCE_DATE_EPOCH is the time, if set.
"""
import argparse
import datetime
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          universal_newlines=True).stdout


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program))


@functools.lru_cache(maxsize=None)
def loader_list():
    return run("/sbin/ldconfig", "-p")


def shared_file(name):
    """Where the loader finds it."""
    found = re.search(r"^\s*%s \(.*\) => (\S+)$" % re.escape(name), loader_list(), re.M)
    return found.group(1) if found else None



@functools.lru_cache(maxsize=None)
def static_file(flag):
    name = "lib%s.a" % flag[2:]
    path = run("gcc", "-print-file-name=" + name).strip()
    return path if path != name else None


@functools.lru_cache(maxsize=None)
def package(path):
    """Name, version, architecture and source of the package that a file belongs to."""
    real = os.path.realpath(path)
    owners = run("dpkg", "-S", path, real, re.sub("^/usr/lib/", "/lib/", path),
                 re.sub("^/usr/lib/", "/lib/", real))
    if not owners:
        return None
    text = run("dpkg-query", "-W", "-f",
               "${Package}\t${Version}\t${Architecture}\t${source:Package}\n",
               owners.split(":")[0].strip())
    return tuple(text.splitlines()[0].split("\t"))


def component(owner, file, how):
    name, version, arch, source = owner
    return {
        "type": "library",
        "bom-ref": "pkg:deb/debian/%s@%s" % (name, version),
        "name": name,
        "version": version,
        "purl": "pkg:deb/debian/%s@%s?arch=%s" % (name, version.replace("+", "%2B"), arch),
        "properties": [
            {"name": "sbsync:linked", "value": how},
            {"name": "sbsync:file", "value": os.path.basename(file)},
            {"name": "sbsync:source", "value": source},
        ],
    }


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--version", required=True)
    args.add_argument("--static", default="")
    args.add_argument("programs", nargs="+")
    args = args.parse_args()
    parts, programs, depends = {}, [], []
    for program in args.programs:
        with open(program, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        name = os.path.basename(program)
        linked = [(x, shared_file(x), "shared") for x in needed(program)]
        if not linked:
            flags = [x for x in args.static.split() if x.startswith("-l")] + ["-lc"]
            linked = [(x, static_file(x), "static") for x in dict.fromkeys(flags)]
        uses = []
        for wanted, file, how in linked:
            # One of ours that another of ours needs.
            own = [p for p in args.programs if os.path.basename(p).startswith(wanted + ".")]
            if own:
                uses.append(os.path.basename(own[0]))
                continue
            owner = package(file) if file else None
            if not owner:
                sys.exit("sbom: %s of %s belongs to no package" % (wanted, name))
            made = component(owner, file, how)
            parts.setdefault(made["bom-ref"], made)
            uses.append(made["bom-ref"])
        programs.append({"type": "application", "bom-ref": name, "name": name,
                         "version": args.version, "licenses": [{"license": {"id": "MIT"}}],
                         "hashes": [{"alg": "SHA-256", "content": digest}]})
        depends.append({"ref": name, "dependsOn": sorted(set(uses))})
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0") or 0),
                                           datetime.timezone.utc)
    seen = "".join(p["hashes"][0]["content"] for p in programs)
    json.dump({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:%s" % uuid.uuid5(uuid.NAMESPACE_OID, seen),
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                     "component": {"type": "application", "bom-ref": "sbsync-package",
                                   "name": "sbsync", "version": args.version}},
        "components": programs + [parts[k] for k in sorted(parts)],
        "dependencies": depends,
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
