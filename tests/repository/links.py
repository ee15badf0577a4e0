"""Whether each link of each page leads somewhere: links.py ROOT

A link to a file or folder of the project must exist, and so must the heading that a link's #fragment names, as GitHub
forms it. Addresses of other sites are not visited.
"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?(\S+?)>?\s*$", re.MULTILINE)


def prose(path):
    """The text of a page, with its code blanked so that lines keep their numbers."""
    fenced, lines = False, []
    with open(path, encoding="utf-8") as page:
        for line in page:
            fence = line.lstrip().startswith("```")
            fenced = fenced != fence
            code = fence or fenced
            lines.append("\n" if code else re.sub(r"`[^`\n]*`", lambda found: "x" * len(found[0]), line))
    return "".join(lines)


def headings(path):
    fenced, seen, found = False, {}, set()
    with open(path, encoding="utf-8") as page:
        for line in page:
            if line.lstrip().startswith("```"):
                fenced = not fenced
            match = None if fenced else re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
            if match:
                text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
                slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
                count = seen.get(slug, 0)
                seen[slug] = count + 1
                found.add(f"{slug}-{count}" if count else slug)
    return found


def complaint(root, page, target):
    """What is wrong with a link, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, fragment = target.partition("#")
    file = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
    if not file.startswith(root):
        return "it leads out of the project"
    if not os.path.exists(file):
        return "there is no such file"
    if fragment and file.endswith(".md") and fragment not in headings(file):
        return "that page has no such heading"
    return None


def pages(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        return [os.path.join(root, name) for name in listed.stdout.split("\n") if name]
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("build", ".git")]
        found += [os.path.join(folder, name) for name in files if name.endswith(".md")]
    return found


def main():
    root = os.path.abspath(sys.argv[1])
    count, broken = 0, []
    for page in pages(root):
        text = prose(page)
        for link in [*LINK.finditer(text), *REFERENCE.finditer(text)]:
            count += 1
            wrong = complaint(root, page, link[1])
            if wrong:
                line = text.count("\n", 0, link.start()) + 1
                broken.append(f"{os.path.relpath(page, root)}:{line}: {link[1]}: {wrong}")
    if not count:
        broken.append("no link was found in any page: the check itself is broken")
    print("\n".join(broken) or f"all {count} links lead somewhere")
    sys.exit(1 if broken else 0)


main()
