// A folder and a header of the consumer's own, of a name that Cairn has too.
#pragma once

inline float target() { return 3; }
