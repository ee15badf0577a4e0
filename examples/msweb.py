"""The visits of examples/data/msweb: users, and the areas of a web site that they visited."""

from typing import NamedTuple

import cairn


class MswebUser(NamedTuple):
    user: int
    areas: list[int]  # 1000 to 1297, each once


def msweb_users(path: str, least: int = 0) -> list[MswebUser]:
    """The users of a file who visited `least` areas or more, in its order."""
    users: list[MswebUser] = []
    for element in cairn.Dataset.text_lines(path):
        line = str(element["line"])
        if line.startswith("C,"):  # C,"10001",10001
            users.append(MswebUser(int(line.rsplit(",", 1)[1]), []))
        elif line.startswith("V,"):  # V,1000,1
            users[-1].areas.append(int(line.split(",")[1]))
    return [user for user in users if len(user.areas) >= least]
