// The consumer's own, as core/graph/ops.h is.
#pragma once

inline bool good(float first, float last) { return last < 0.001f * first; }
