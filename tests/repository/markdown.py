"""Prose of Markdown pages has at most 100 columns: markdown.py SOURCE

Tables and blocks of code have the width that they need, and a span of code is not broken.
"""
import pathlib
import re
import subprocess
import sys

COLUMNS = 100
source = pathlib.Path(sys.argv[1])
git = subprocess.run(["git", "ls-files", "*.md"], cwd=source, capture_output=True, text=True, check=False)
found = (path.relative_to(source) for path in source.rglob("*.md"))
pages = git.stdout.split() or [str(path) for path in found if "build" not in path.parts]
long = []
for page in pages:
    code = False
    for number, line in enumerate((source / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        if code or len(line) <= COLUMNS or line.lstrip().startswith("|") or line.startswith("    "):
            continue
        whole = re.sub(r"`[^`]*`", lambda span: "x" * len(span.group(0)), line)
        if " " in whole[len(line) - len(line.lstrip()) + 2:COLUMNS + 1]:
            long.append(f"{page}:{number}: {len(line)} columns")
print("\n".join(long))
if len(pages) < 20:
    sys.exit(f"only {len(pages)} pages below {source}")
if long:
    sys.exit(f"{len(long)} lines of prose have more than {COLUMNS} columns")
print(f"{len(pages)} pages")
