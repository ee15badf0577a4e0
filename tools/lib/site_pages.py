"""A hook of mkdocs (mkdocs.yml): what the site has beside docs/, and where links lead that leave that folder.

README.md becomes the first page, each folder's README.md a page of its own, each notebook of examples/notebooks a page. The Python
package's reference has pages that name what is public, for mkdocstrings; the one of C++ is doxygen's, if tools/docs has made it. A link
to a page of these leads there, a link to a public header to doxygen's page of it, and any other link to a file becomes its text.
"""
import json
import os
import pathlib
import re

import griffe
from mkdocs.structure.files import File
from pygments.formatters import HtmlFormatter

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = os.environ.get("CAIRN_PYTHON_PACKAGE", str(ROOT / "build/dev/python"))
DOXYGEN = pathlib.Path(os.environ.get("CAIRN_DOXYGEN_HTML", ROOT / "build/docs/html"))
MODULES = ["nn", "optimizers", "losses", "metrics", "callbacks", "data", "errors"]
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
BLOCK = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]*`", re.MULTILINE | re.DOTALL)

sources = {}  # of the page with this address in the site: the file of the project, without the project's own folder
pages = {}  # the other way round


def page_of(path):
    """The address in the site of a page of the project: README.md, core/README.md, docs/running.md."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/") :]
    if path.endswith("/README.md"):
        return f"rooms/{os.path.dirname(path)}.md"
    return path.lower() if "/" not in path else None


def own_pages():
    found = ["CHANGELOG.md", "CONTRIBUTING.md"]
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in ("build", "shared") and not name.startswith("."))
        if "README.md" in files:
            found.append((pathlib.Path(folder) / "README.md").relative_to(ROOT).as_posix())
    return found


def public_headers():
    with open(ROOT / "cmake/public_headers.txt", encoding="utf-8") as file:
        return [line.split("#")[0].strip() for line in file if line.split("#")[0].strip()]


def page_of_header(path):
    """Doxygen's page of a header, which bears as much of its path as tells it from others."""
    parts = path.split("/")
    for first in range(len(parts)):
        name = "/".join(parts[first:]).replace("_", "__").replace("/", "_2").replace(".", "_8") + ".html"
        if (DOXYGEN / name).exists():
            return f"cpp/{name}"
    return None


# ---- the Python package ----

def own(member):
    """What a name of a module stands for; None: something of another package, which it imports."""
    try:
        target = member.final_target if member.is_alias else member
    except griffe.AliasResolutionError:
        return None
    return target if target.path.startswith("cairn") else None


def public(module):
    """The names that users of a module see: classes, and functions."""
    classes, functions = [], []
    for name, member in sorted(module.all_members.items(), key=lambda each: each[0].lower()):
        target = None if name.startswith("_") else own(member)
        if target is not None and target.is_class:
            classes.append(name)
        elif target is not None and target.is_function:
            functions.append(name)
    return classes, functions


def reference(title, module, names, text):
    entries = "\n".join(f"::: {module}.{name}\n" for name in names)
    return f"# {title}\n\n{text}\n\n{entries}"


def python_pages():
    if not os.path.exists(os.path.join(PACKAGE, "cairn/_cairn/__init__.pyi")):
        raise SystemExit(f"{PACKAGE} has no stubs of the package cairn: build the target cairn_stubs")
    loader = griffe.GriffeLoader(search_paths=[PACKAGE], allow_inspection=False)
    package = loader.load("cairn")
    loader.resolve_aliases(implicit=True, external=False)
    classes, functions = public(package)
    errors = [name for name in classes if name == "Error" or name.endswith("Error")]
    classes = [name for name in classes if name not in errors]
    made = {
        "python-api/classes.md": reference("cairn: classes", "cairn", classes, "Strategies, data, models, and what they give."),
        "python-api/operations.md": reference("cairn: operations", "cairn", functions, "Functions of arrays, and of the package."),
    }
    for name in MODULES:
        if name not in package.all_members:
            continue
        names = [each for kind in public(own(package.all_members[name])) for each in kind]
        made[f"python-api/{name}.md"] = reference(f"cairn.{name}", f"cairn.{name}", names, "")
    return made


# ---- notebooks ----

def notebook_page(path):
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    texts = []
    for cell in cells:
        source = "".join(cell["source"])
        texts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(texts) + "\n"


# ---- mkdocs calls these ----

def on_files(files, config):
    def add(address, source=None, **how):
        files.append(File.generated(config, address, **how))
        if source:
            sources[address] = source

    for path in (ROOT / "docs").glob("*.md"):
        sources[path.name] = f"docs/{path.name}"
    for path in own_pages():
        add(page_of(path), path, abs_src_path=str(ROOT / path))
    notebooks = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
    for path in notebooks:
        add(f"notebooks/{path.stem}.md", path.relative_to(ROOT).as_posix(), content=notebook_page(path))
    reference_pages = python_pages()
    for address, text in reference_pages.items():
        add(address, content=text)
    add("pygments.css", content=HtmlFormatter().get_style_defs(".codehilite"))
    headers = [(path, page_of_header(path)) for path in public_headers()]
    for path in DOXYGEN.rglob("*") if DOXYGEN.exists() else []:
        if path.is_file():
            add(f"cpp/{path.relative_to(DOXYGEN).as_posix()}", abs_src_path=str(path))
    lines = [f"- [{path}]({page})" for path, page in headers if page]
    cpp = ["The [whole reference](cpp/index.html), by doxygen, and its page of each public header:", "", *lines]
    add("cpp.md", content="\n".join(["# The C++ reference", "", *(cpp if lines else ["It is built where doxygen is installed."])]))
    pages.update({path: address for address, path in sources.items()})
    config.nav.append({"Reference": ["cpp.md", *reference_pages]})
    config.nav.append({"Notebooks": [f"notebooks/{path.stem}.md" for path in notebooks]} if notebooks else {"Examples": "examples.md"})
    rooms = sorted(address for address in sources if address.startswith("rooms/"))
    config.nav.append({"Rooms": [{address[len("rooms/") : -len(".md")]: address} for address in rooms]})
    config.nav.append({"The project": ["contributing.md", "changelog.md"]})
    return files


def mended(link, folder, here):
    """A link of a page as it reads on the site."""
    target, text = link["target"], link["text"]
    if re.match(r"[a-z][a-z0-9+.-]*:|#", target):
        return link[0]
    name, hash_sign, fragment = target.partition("#")
    path = os.path.normpath(os.path.join(folder, name))
    address = pages.get(path) or pages.get(f"{path}/README.md") or page_of_header(path)
    if address is None and path.startswith("docs/") and (ROOT / path).is_file():
        address = path[len("docs/") :]
    if address is None:
        return text
    return f"{link['image']}[{text}]({os.path.relpath(address, os.path.dirname(here) or '.')}{hash_sign}{fragment})"


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    if here not in sources:
        return markdown
    folder = os.path.dirname(sources[here])
    # Links are looked for where code is blanked, and mended in the text itself.
    blanked = BLOCK.sub(lambda code: "x" * len(code[0]), markdown)
    made, at = [], 0
    for found in LINK.finditer(blanked):
        made += [markdown[at : found.start()], mended(LINK.match(markdown, found.start()), folder, here)]
        at = found.end()
    return "".join([*made, markdown[at:]])
