// Which checkpoints a path on a command line means.
#pragma once
#include <string>
#include <vector>

namespace cairn::tools {

// The checkpoints that `path` means, oldest first: itself, if it is a checkpoint's own folder; or
// all of a folder of checkpoints, or of a run's folder.
//   Errors  NotFound: there is none; names what was looked for.
std::vector<std::string> checkpoints_at(const std::string& path);
// The newest of them.
std::string checkpoint_at(const std::string& path);
// The newest checkpoint of the newest run below ./runs that has one.
//   Errors  NotFound: none has.
std::string latest_checkpoint();

}  // namespace cairn::tools
