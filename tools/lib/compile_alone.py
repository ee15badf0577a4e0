"""Looks at each source of a build tree by itself: compile_alone.py TREE JOBS [--drawn N | FILE_OR_FOLDER...]

clang analyses every file once, with the folders and definitions of the first target that has it, and generates no code.
Headers that many files include are parsed once for those files, which halves the time: each file is given those of SHARED
that it includes itself, by headers of ours or not, or the test library, and so nothing that it lacks is hidden. Prints
what is wrong, and ends with 1 if anything was. Sources of CUDA are left out, for no unity build has them, and what is to
fail (tests/compile). With --drawn N it takes what the commits of the last four hours touched, and of all else every N-th
file, drawn by the commit.
"""
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

SHARED = ["cstdint", "functional", "map", "memory", "optional", "span", "string", "vector"]
TEST_LIBRARY = ["gmock/gmock.h", "gtest/gtest.h"]  # the first includes the second
FILES_MIN = 8  # that a precompiled header serves; for fewer it costs more than it saves
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.lru_cache(maxsize=None)
def includes(path, root):
    """What a file includes: the names in angle brackets, its own and those of our headers below it."""
    found, waiting, seen = set(), [path], {path}
    while waiting:
        for ours, foreign in INCLUDE.findall(read(waiting.pop())):
            header = os.path.join(root, ours)
            if foreign:
                found.add(foreign)
            elif os.path.exists(header) and header not in seen:
                seen.add(header)
                waiting.append(header)
    return found


def chosen(file, root, names):
    wanted = [os.path.abspath(os.path.join(root, name)) for name in names]
    return not wanted or any(file == name or file.startswith(name + os.sep) for name in wanted)


def drawn(files, root, share):
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True).stdout

    commit = git("rev-parse", "HEAD").strip()
    since = int(git("show", "-s", "--format=%ct", "HEAD")) - 4 * 3600
    touched = set(git("log", f"--since={since}", "--name-only", "--format=").split("\n"))

    def is_drawn(file):
        return int(hashlib.sha256(f"{commit} {file}".encode()).hexdigest(), 16) % share == 0

    names = {file: os.path.relpath(file, root) for file in files}
    return {file for file, name in names.items() if name in touched or is_drawn(name)}


def shared_by(file, root):
    """The headers to precompile that a file includes."""
    have = includes(file, root)
    library = next((header for header in TEST_LIBRARY if header in have), None)
    return (library,) if library else tuple(header for header in SHARED if header in have)


def precompile(made, headers):
    text = "".join(f"#include <{header}>\n" for header in headers)
    subprocess.run(["clang++", "-std=c++20", "-DNDEBUG", "-x", "c++-header", "-", "-o", made], input=text, text=True,
                   check=True)
    return made


def command(words, precompiled):
    kept, folder = [], False
    for word in words:
        if folder or re.match(r"-(I|D|isystem|std=|m)", word):
            kept.append(word)
        folder = word == "-isystem"
    # A precompiled header is for one processor.
    fits = precompiled and not any(word.startswith("-m") for word in kept)
    own = ["-include-pch", precompiled] if fits else []
    return ["clang++", "-fsyntax-only", "-w", *own, *kept, words[-1]]


def commands(tree, root, names, share):
    """A command line per file, in the order of the build."""
    words_of = {}
    for entry in json.loads(read(os.path.join(tree, "compile_commands.json"))):
        file, words = entry["file"], shlex.split(entry["command"])
        # Sources that the build generates are made by its steps, of which none has run here.
        ours = os.path.exists(file) and ".capnp." not in file and "cmake_pch" not in file
        if ours and file.endswith(".cc") and "/tests/compile/" not in file and chosen(file, root, names):
            words_of.setdefault(file, words)
    if share > 1:
        taken = drawn(words_of, root, share)
        words_of = {file: words for file, words in words_of.items() if file in taken}
    groups = collections.defaultdict(list)
    for file in words_of:
        groups[shared_by(file, root)].append(file)
    found = {}
    for number, (headers, files) in enumerate(groups.items()):
        worth = headers and len(files) >= FILES_MIN
        precompiled = precompile(os.path.join(tree, f"shared-{number}.pch"), headers) if worth else None
        found.update({file: command(words_of[file], precompiled) for file in files})
    return {file: found[file] for file in words_of}


def main():
    tree, jobs, names = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    share = 1
    if names[:1] == ["--drawn"]:
        share, names = int(names[1]), []
    root = os.path.dirname(os.path.dirname(tree))
    found = commands(tree, root, names, share)
    if not found:
        sys.exit(f"no source file of the build is named {' or '.join(names)}")
    broken = []

    def compile_file(file):
        return subprocess.run(found[file], cwd=tree, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for file, result in zip(found, pool.map(compile_file, found)):
            if result.returncode == 0:
                continue
            broken.append(os.path.relpath(file, root))
            print(result.stderr, flush=True)
    if broken:
        sys.exit(f"{len(broken)} of {len(found)} files do not compile by themselves: {' '.join(broken)}")
    print(f"all {len(found)} files compile by themselves")


main()
