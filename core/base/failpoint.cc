#include "core/base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

namespace cairn {
namespace {

constexpr std::array kFailpointNames = {
    "rows.begin",     "rows.folder_made", "rows.file_written",  "rows.taken_in",
    "rows.end",       "files.begin",      "files.linked",       "file.begin",
    "file.written",   "file.renamed",     "file.end",           "prune.begin",
    "prune.unlisted", "prune.end",        "consolidate.linked", "consolidate.end",
    "journal.begin",  "journal.torn",     "journal.written",    "journal.end"};

struct Place {
  std::string name;
  std::atomic<long> passes{1};  // passes left, the fatal one included
};

// The environment is read once. The place is never freed: threads of an Offload may still pass
// failpoints while static objects are destroyed.
Place* chosen() {
  static Place* const place = []() -> Place* {
    const char* text = std::getenv("CAIRN_DIE_AT");
    if (text == nullptr) return nullptr;
    auto* made = new Place;  // for the life of the process
    made->name = text;
    if (auto colon = made->name.find(':'); colon != std::string::npos) {
      made->passes = std::atol(made->name.c_str() + colon + 1);
      made->name.resize(colon);
    }
    return made;
  }();
  return place;
}

}  // namespace

std::span<const char* const> failpoints() { return kFailpointNames; }

// Every pass but the last is counted here, as the caller passes the place only then.
bool dies_at(const char* name) {
  Place* place = chosen();
  if (place == nullptr || place->name != name) return false;
  if (place->passes == 1) return true;
  place->passes -= 1;
  return false;
}

// SIGKILL, since nothing may run afterwards: a destructor that removes a temporary file, or a
// buffer that is flushed, would make this gentler than the loss of power that it stands for. Of
// several threads exactly one takes the count from 1; pause() holds it until the signal arrives.
void failpoint(const char* name) {
  Place* place = chosen();
  if (place == nullptr || place->name != name || place->passes.fetch_sub(1) != 1) return;
  ::kill(::getpid(), SIGKILL);
  ::pause();
}

}  // namespace cairn
