// A loss of power, as the journal of a coordinator meets it whose process has died.
#pragma once
#include <string>

namespace cairn::chaos {

// The journal loses what was not synced when its last record was written, but for `percent` of it.
void lose_unsynced(const std::string& journal, int percent);

}  // namespace cairn::chaos
