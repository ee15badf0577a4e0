"""An extension of griffe's, by which mkdocstrings reads our docstrings: their examples become blocks of code."""
import inspect
import re

import griffe

ROLE = re.compile(r":(?:meth|class|func|mod|attr):`~?([^`]+)`")


def page_text(docstring):
    """A docstring as Markdown: what begins with >>>, to the next empty line, is code; a role's name is code, too."""
    made, code = [], False
    for line in ROLE.sub(r"`\1`", inspect.cleandoc(docstring)).split("\n"):
        if not code and line.startswith(">>>"):
            made += ["", "```pycon"]
            code = True
        elif code and not line.strip():
            made.append("```")
            code = False
        made.append(line)
    return "\n".join([*made, "```"] if code else made)


class Docstrings(griffe.Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = page_text(obj.docstring.value)
