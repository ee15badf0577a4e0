"""The metadata of a wheel: wheel_info.py PYPROJECT FOLDER makes FOLDER/NAME-VERSION.dist-info as PEP 427 has it."""
import os
import shutil
import sys
import tomllib

TAG = "cp310-abi3-linux_x86_64"  # auditwheel says later on which Linux it runs


def main():
    source, folder = sys.argv[1:]
    with open(source, "rb") as file:
        project = tomllib.load(file)["project"]
    root = os.path.dirname(os.path.abspath(source))
    name, version = project["name"].replace("-", "_"), project["version"]
    info = os.path.join(folder, f"{name}-{version}.dist-info")
    os.makedirs(info)

    def write(file, lines):
        with open(os.path.join(info, file), "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")

    write("WHEEL", ["Wheel-Version: 1.0", "Generator: cairn", "Root-Is-Purelib: false", f"Tag: {TAG}"])
    with open(os.path.join(root, project["readme"]), encoding="utf-8") as file:
        readme = file.read()
    write(
        "METADATA",
        [
            "Metadata-Version: 2.1",
            f"Name: {project['name']}",
            f"Version: {version}",
            f"Summary: {project['description']}",
            f"Requires-Python: {project['requires-python']}",
            *(f"Requires-Dist: {each}" for each in project["dependencies"]),
            "Description-Content-Type: text/markdown",
            "",
            readme,
        ],
    )
    scripts = [f"{command} = {function}" for command, function in project["scripts"].items()]
    write("entry_points.txt", ["[console_scripts]", *scripts])
    shutil.copy(os.path.join(root, project["license"]["file"]), info)


main()
