"""Looks at each source of a build tree by itself: compile_alone.py TREE JOBS [FILE_OR_FOLDER...]

clang analyses every file once, with the folders and definitions of the first target that has it, and generates no code.
The headers of SHARED are parsed once for all files, and those of the test library once for all that include them, which
halves the time. What the former hides is looked for in the text: a file that uses a name of SHARED must include its
header, by itself or through headers of ours. Prints what is wrong, and ends with 1 if anything was. Sources of CUDA are
left out, for no unity build has them, and what is to fail (tests/compile).
"""
import concurrent.futures
import functools
import json
import os
import re
import shlex
import subprocess
import sys

# A header of the standard library, the names that need it, and other headers that bring it.
SHARED = {
    "cstdint": (r"std::u?int(8|16|32|64)_t\b", "atomic chrono random"),
    "functional": (r"std::(function|bind|reference_wrapper)\b", ""),
    "map": (r"std::(multi)?map\b", ""),
    "memory": (r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this)\b", ""),
    "optional": (r"std::(optional|nullopt|make_optional)\b", ""),
    "span": (r"std::span\b", ""),
    "string": (r"std::(string|to_string|getline|stoi|stod|stof)\b", "filesystem fstream iomanip iostream sstream stdexcept"),
    "vector": (r"std::vector\b", ""),
}
BRINGS_ALL = re.compile(r"gtest/|gmock/|nlohmann/|boost/|CLI/|toml|rapidcheck")
TEST_LIBRARY = ["gmock/gmock.h", "gtest/gtest.h"]  # the first includes the second
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


def missing(path, root):
    """The headers of SHARED that a file uses and does not include."""
    have = includes(path, root)
    if any(BRINGS_ALL.match(name) for name in have):
        return []
    text = re.sub(r"//.*|\"(\\.|[^\"\\\n])*\"", "", read(path))
    return [header for header, (names, others) in SHARED.items()
            if header not in have and have.isdisjoint(others.split()) and re.search(names, text)]


def chosen(file, root, names):
    wanted = [os.path.abspath(os.path.join(root, name)) for name in names]
    return not wanted or any(file == name or file.startswith(name + os.sep) for name in wanted)


def precompile(tree, name, headers):
    made = os.path.join(tree, name + ".pch")
    text = "".join(f"#include <{header}>\n" for header in headers)
    subprocess.run(["clang++", "-std=c++20", "-DNDEBUG", "-x", "c++-header", "-", "-o", made], input=text, text=True,
                   check=True)
    return made


def command(words, shared):
    kept, folder = [], False
    for word in words:
        if folder or re.match(r"-(I|D|isystem|std=|m)", word):
            kept.append(word)
        folder = word == "-isystem"
    # A precompiled header is for one processor.
    own = [] if any(word.startswith("-m") for word in kept) else ["-include-pch", shared]
    return ["clang++", "-fsyntax-only", "-w", *own, *kept, words[-1]]


def commands(tree, root, names):
    """A command line per file, in the order of the build."""
    found, standard = {}, list(SHARED)
    shared = {None: precompile(tree, "shared", standard)}
    shared.update({header: precompile(tree, os.path.basename(header), standard + [header]) for header in TEST_LIBRARY})
    for entry in json.loads(read(os.path.join(tree, "compile_commands.json"))):
        file, words = entry["file"], shlex.split(entry["command"])
        # Sources that the build generates are made by its steps, of which none has run here.
        ours = os.path.exists(file) and ".capnp." not in file and "cmake_pch" not in file
        if ours and file.endswith(".cc") and "/tests/compile/" not in file and chosen(file, root, names):
            library = next((header for header in TEST_LIBRARY if header in includes(file, root)), None)
            found.setdefault(file, command(words, shared[library]))
    return found


def main():
    tree, jobs, names = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    root = os.path.dirname(os.path.dirname(tree))
    found = commands(tree, root, names)
    if not found:
        sys.exit(f"no source file of the build is named {' or '.join(names)}")
    broken = []

    def compile_file(file):
        return subprocess.run(found[file], cwd=tree, capture_output=True, text=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for file, result in zip(found, pool.map(compile_file, found)):
            lacks = missing(file, root)
            if result.returncode == 0 and not lacks:
                continue
            name = os.path.relpath(file, root)
            broken.append(name)
            print(result.stderr + "".join(f"{name}: #include <{header}> is missing\n" for header in lacks), flush=True)
    if broken:
        sys.exit(f"{len(broken)} of {len(found)} files do not compile by themselves: {' '.join(broken)}")
    print(f"all {len(found)} files compile by themselves")


main()
