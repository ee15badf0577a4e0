#!/usr/bin/env python3
"""What doxygen reads instead of a header or page of ours: `//` contracts as it wants them.

The block above a declaration becomes `///`, the remark behind one `///<`, the block on top of a file its description, and
`// ---- title ----` a section. "Errors", "Thread", "Cost", "Result" and their like become paragraphs with a title, deeper lines
after an empty one an example. Everything else of a comment is prose, so nothing in it is taken for a command or for HTML.
Links of pages to what the reference does not hold lose their address.

Usage: doxygen_filter.py FILE      (doxygen calls it, with its INPUT_FILTER)
"""
import os
import re
import sys

LABEL = re.compile(r"(?:^|\s{2,})(Result|Errors?|Thread|Cost|Shapes|Elements|Owner)(?::\s+|,[^:]*: +|\s{2,})(?=\S)")
COMMENT = re.compile(r"^(\s*)// ?(.*)$")
SECTION = re.compile(r"^-{3,} (.*?) -{3,}$")


def prose(text):
    """Doxygen's text of plain text: `code` stays code, all else is taken as it stands."""
    pieces = re.split(r"`([^`]*)`", text)
    for i, piece in enumerate(pieces):
        if i % 2:
            pieces[i] = "<code>" + piece.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "\\@") + "</code>"
        else:
            piece = re.sub(r"([\\@&$#<>%])", r"\\\1", piece)
            pieces[i] = re.sub(r"([*\[\]]|(?<!\w)_)", r"\\\1", piece).replace('"', "&quot;")
    return "".join(pieces)


def strip_code(line):
    """The code of a line and its trailing remark, if it has one; strings and characters do not count as either."""
    bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|(?<![0-9])'(?:\\.|[^'\\])'", lambda m: "~" * len(m[0]), line)
    at = bare.find("//")
    if at < 0:
        return bare, None
    return bare[:at], line[at + 2 :].strip()


class Contract:
    """A block of comment lines (without their slashes) as a doxygen comment."""

    def __init__(self, indent):
        self.indent, self.out, self.example = indent, [], False
        self.after_empty = self.after_colon = False

    def put(self, text=""):
        self.out.append(f"{self.indent}/// {text}".rstrip())

    def end_example(self):
        if self.example:
            self.put("\\endcode")
        self.example = False

    def labelled(self, text):
        """'Errors  none.   Thread  any.' is two paragraphs; what stands before the first belongs to the one above."""
        pieces = LABEL.split(text)
        if pieces[0].strip():
            self.put(prose(pieces[0].strip()))
        for title, rest in zip(pieces[1::2], pieces[2::2]):
            self.put()
            self.put(f"\\par {title}")
            self.put(prose(rest.strip()))

    def line(self, text):
        deep = text.startswith("  ")
        if not text.strip():
            if not self.example:
                self.put()
            else:
                self.out.append(f"{self.indent}///")
        elif deep and (self.example or self.after_empty or self.after_colon) and not LABEL.match(text):
            if not self.example:
                self.put("\\code{.cpp}" if self.after_empty else "\\code{.unparsed}")
            self.example = True
            self.put(text[2:])
        else:
            self.end_example()
            self.labelled(text)
        self.after_empty, self.after_colon = not text.strip(), text.endswith(":")

    def lines(self, texts):
        for text in texts:
            self.line(text)
        self.end_example()
        return self.out


class Header:
    def __init__(self, path, lines):
        self.path, self.source, self.out = path, lines, []
        self.scopes = []          # of open braces: True where declarations stand in them
        self.parentheses = 0
        self.head = ""            # of the statement that is being read
        self.sections = []        # depth of each open section
        self.top = []             # the comment on top of the file
        self.hidden = None        # depth at which a namespace of details was opened
        self.remark_column = -1   # where the last line's remark began

    def declares(self):
        return all(self.scopes)

    def read_code(self, code):
        for char in code:
            if char == "(":
                self.parentheses += 1
            elif char == ")":
                self.parentheses -= 1
            elif char == "{":
                kind = re.search(r"\b(namespace|class|struct|enum|union)\b", self.head)
                function = "(" in self.head or "=" in self.head.replace("operator", "")
                self.scopes.append(bool(kind) and not function and not self.parentheses)
                self.head = ""
                continue
            elif char == "}":
                self.close_sections(len(self.scopes))
                if self.scopes:
                    self.scopes.pop()
                self.head = ""
                continue
            elif char == ";" and not self.parentheses:
                self.head = ""
                continue
            self.head += char
        if re.match(r"\s*#", code) or re.match(r"\s*(public|private|protected):", code):
            self.head = ""

    def close_sections(self, depth):
        while self.sections and self.sections[-1] >= depth:
            self.out.append("///@}")
            self.out.append("")
            self.sections.pop()

    def section(self, title):
        self.close_sections(len(self.scopes))
        self.sections.append(len(self.scopes))
        self.out += ["", f"/// \\name {prose(title[0].upper() + title[1:])}", "///@{", ""]

    def code_line(self, line):
        if re.match(r"\s*namespace detail {", line):
            self.out.append("/// \\cond")
            self.hidden = len(self.scopes)
        self.tell_from_the_top(line)
        code, remark = strip_code(line)
        said = remark and not remark.startswith(("NOLINT", "clang-format"))
        remark = re.sub(r"\s*NOLINT\S*", "", remark or "").strip()
        declared = self.declares() and code.strip() and not re.match(r"\s*(}|#|(public|private|protected):|(class|struct) \w+;|template\b.*>\s*$)", code)
        opens = code.count("{") > code.count("}")
        before = line[: len(code)].rstrip()
        at_end = code.rstrip().endswith((";", ",", "}")) or (self.enumerators() and not opens)
        self.read_code(code)
        if said and declared and not opens and at_end and remark:
            self.remark_column = len(code)
            self.out.append(f"{before}  ///< {' '.join(prose(piece) for piece in LABEL.sub(lambda m: ' ' + m[1] + ': ', remark).split())}")
        else:
            self.remark_column = -1
            self.out.append(before)
        if self.hidden == len(self.scopes):
            self.out.append("/// \\endcond")
            self.hidden = None

    def tell_from_the_top(self, line):
        """A class that the top of its file speaks of, 'Dataset: ...', needs no block of its own: it has that one."""
        name = re.match(r"(?:class|struct) (\w+)\b[^;]*{", line)
        told = re.match(r"(\w+): (.*)", self.top[0]) if self.top else None
        above = next((done for done in reversed(self.out) if not done.startswith("template")), "")
        if name and told and name[1] == told[1] and not above.startswith("///"):
            self.out += Contract("").lines([told[2][0].upper() + told[2][1:], *self.top[1:]])

    def enumerators(self):
        return not self.head.strip()

    def comment_block(self, at):
        """Emits the comment lines from `at` on; returns the line behind them."""
        indent = COMMENT.match(self.source[at])[1]
        texts = []
        while at < len(self.source) and (found := COMMENT.match(self.source[at])):
            if SECTION.match(found[2]) and texts:
                break
            texts.append(found[2])
            at += 1
            if SECTION.match(found[2]):
                break
        below = self.source[at] if at < len(self.source) else ""
        title = SECTION.match(texts[0])
        if title and self.declares():
            if title[1] == "templates":
                self.close_sections(len(self.scopes))
            else:
                self.section(title[1])
        elif len(indent) == self.remark_column and self.out:
            self.out[-1] += " " + " ".join(prose(text.strip()) for text in texts)
            self.remark_column = len(indent)
        elif texts[0].startswith(("clang-format", "NOLINT")) or not self.declares():
            pass
        elif below.startswith("#pragma once"):
            self.out += ["/// \\file", *Contract("").lines(texts)]
            self.top = texts
        elif below.strip() and not re.match(r"\s*(namespace\b|}|(public|private|protected):|(class|struct) \w+;|using namespace)", below):
            self.out += Contract(indent).lines(texts)
        return at

    def filtered(self):
        at = 0
        while at < len(self.source):
            if COMMENT.match(self.source[at]):
                at = self.comment_block(at)
            else:
                self.code_line(self.source[at])
                at += 1
        return self.out


def page(path, text):
    """A page of Markdown, with addresses only where the reference has what they name."""
    folder = os.path.dirname(os.path.abspath(path))
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    def link(found):
        target = os.path.relpath(os.path.join(folder, found[2]), root)
        inside = re.fullmatch(r"README\.md|docs/[\w-]+\.md", target) and os.path.exists(os.path.join(root, target))
        return found[0] if inside or "://" in found[2] else found[1]

    return re.sub(r"\[([^]]*)\]\(([^)#]*)[^)]*\)", link, text)


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as source:
        text = source.read()
    if path.endswith(".md"):
        print(page(path, text), end="")
    else:
        print("\n".join(Header(path, text.splitlines()).filtered()))


if __name__ == "__main__":
    main()
