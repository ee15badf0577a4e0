"""No class has more than 20 data members: one that has holds a second idea.

    python3 tests/repository/members.py SOURCE_FOLDER [--list N]

Reads the sources as text: comments and literals are cut out, then each class body is split into the
declarations of its own level. What has no parenthesis of a function and is no type, alias or
constant is a data member, and each name of `int a = 0, b = 0;` is one. --list N prints every class
with at least N members instead of judging.
"""
import pathlib
import re
import sys

MEMBERS_MAX = 20
ROOMS = ["bench", "collective", "coordinator", "core", "data", "examples", "model", "nn", "ps", "rpc",
         "service", "storage", "tests", "tools", "worker"]
NOT_A_MEMBER = re.compile(
    r"(using|typedef|friend|static|template|enum|class|struct|explicit|virtual|static_assert|constexpr)\b")


def without_comments_and_literals(text):
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"(?<![0-9a-fA-F])'(\\.|[^'\\\n])'", "''", text)  # not the one within 1'000
    text = re.sub(r"//.*", "", text)
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def end_of_braces(text, begin):
    depth = 0
    for i in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def names_declared(statement):
    """How many data members one declaration makes."""
    statement = re.sub(r"^((public|private|protected)\s*:\s*)+", "", statement.strip())
    if not statement or NOT_A_MEMBER.match(statement):
        return 0
    while re.search(r"<[^<>]*>", statement):  # commas of template arguments separate no names
        statement = re.sub(r"<[^<>]*>", "", statement)
    first, *_ = re.split(r"=|\{", statement, maxsplit=1)
    if "(" in first or "operator" in first:
        return 0
    return 1 + len(re.findall(r",\s*\w+\s*(?=[={,]|$)", statement))


def members(body):
    count, statement, i = 0, "", 0
    while i < len(body):
        c = body[i]
        if c == ";":
            count += names_declared(statement)
            statement = ""
        elif c == "{":
            end = end_of_braces(body, i)
            own_type = re.search(r"\b(class|struct|enum|union)\b[^;=()]*$", statement)
            without_templates = statement
            while re.search(r"<[^<>]*>", without_templates):
                without_templates = re.sub(r"<[^<>]*>", "", without_templates)
            function = ("(" in without_templates and "=" not in without_templates.split("(")[0]
                        and not statement.rstrip().endswith("="))  # else a default argument
            if own_type:
                named = re.match(r"\s*(\w+)[^;]*;", body[end + 1:])  # struct {...} name;
                count += 1 if named else 0
                i = body.find(";", end)
                if i < 0:
                    break
                statement = ""
            elif function:
                statement = ""
                i = end
            else:
                statement += "{}"  # an initial value
                i = end
        else:
            statement += c
        i += 1
    return count


def classes(path):
    text = without_comments_and_literals(path.read_text())
    for found in re.finditer(r"\b(class|struct)\s+([\w:]+)[^;{}()=]*\{", text):
        if re.search(r"enum\s*$", text[:found.start()]):
            continue
        yield found.group(2), members(text[found.end():end_of_braces(text, found.end() - 1)])


def main():
    source = pathlib.Path(sys.argv[1])
    least = int(sys.argv[3]) if len(sys.argv) > 3 else MEMBERS_MAX + 1
    files = [path for room in ROOMS for kind in ("*.h", "*.cc") for path in (source / room).rglob(kind)]
    found = sorted(((n, name, path) for path in files for name, n in classes(path) if n >= least),
                   key=lambda each: (-each[0], each[1]))
    for n, name, path in found:
        print(f"{path.relative_to(source)}: {name} has {n} data members")
    if len(files) < 100:
        sys.exit(f"only {len(files)} sources below {source}")
    if found and len(sys.argv) <= 3:
        sys.exit(f"more than {MEMBERS_MAX}: look for the second class inside")


main()
