"""How tests of bad input judge an error: its class, and a text that names the thing, the place and the cure."""

import re

import pytest

import cairn

# What no message of a Python package says: names of C++'s, addresses, lists of signatures.
FOREIGN = re.compile(r"::|\bstd\b|nanobind|incompatible function|0x[0-9a-f]{6}|PyObject|<class |\bkN?[A-Z][a-z]+\b|unordered_|basic_string|bad_cast")


class Case:
    """Code that is wrong, the class of its error, and words that the text has, in this order."""

    def __init__(self, name, act, kind, *words):
        self.name, self.act, self.kind, self.words = name, act, kind, words

    def check(self, *given):
        with pytest.raises(self.kind) as caught:
            self.act(*given)
        error, text = caught.value, str(caught.value)
        assert isinstance(error, cairn.Error) or type(error) is self.kind, type(error)
        assert not FOREIGN.search(text), text
        place = 0
        for word in self.words:
            assert word in text[place:], f"{word!r} is not in {text!r}"
            place = text.index(word, place) + len(word)


def parametrized(cases):
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    return pytest.mark.parametrize("case", cases, ids=names)
