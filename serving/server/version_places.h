// Where the versions of a model lie on disk.
//
//   /models/clicks                 a saved model: one version, whose number is its step
//   /models/clicks/1, .../2        a folder of versions, each a saved model, by number
//   runs/adult                     a run of `cairn train`: its model, and the newest checkpoint
//                                  with the run's graph if it is of a later step
//   runs/adult/checkpoints/ckpt-7  one checkpoint of a run
//   Thread  any that may block on files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cairn::serving {

struct VersionPlace {
  std::int64_t version = 0;
  std::string model;    // the folder of a saved model
  std::string weights;  // a checkpoint; empty: the model's own weights
  // Changes when another model takes the place of this one.
  std::string identity;
  bool has_weights = true;  // false: only place_to_follow() gives that
};

// The versions that there are now, by ascending number; none while there is nothing to serve yet.
//   Errors  NotFound: there is no such path. InvalidArgument: it is none of the above; says what
//           was looked for.
std::vector<VersionPlace> versions_at(const std::string& path);

// For a model that follows its training: the newest version, or where there is none yet a run's
// graph without weights. None: the run has not begun.
//   Errors  as versions_at().
std::optional<VersionPlace> place_to_follow(const std::string& path);

// Which file lies at a path: another text when it has been written anew; empty: there is none.
std::string identity_of(const std::string& file);

}  // namespace cairn::serving
