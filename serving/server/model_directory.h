// ModelDirectory: the models that a server has, each in the versions that it is to serve.
//
// A thread of its own looks at the models' places every `look_every`. A new version is read,
// verified and warmed beside the one that serves, and takes over at the next request; the old one's
// memory is given back when its last request has ended. A version that cannot be loaded, or that
// takes or gives other columns than the one before, is refused: the log and status() say why, and
// the one before serves on; where none serves yet, the next older one is loaded. A version that was
// refused is tried again, after a second at first and every half minute later on.
//   Thread  any.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/tensor/element.h"
#include "serving/retrieval/candidate_index.h"
#include "serving/server/candidate_data.h"
#include "serving/server/follower.h"

namespace cairn::serving {

class MemoryBudget;
class ServedModel;
class VersionCodecs;
struct ReadCounters;
struct VersionCandidates;

// A model, as the command line or a program names it.
struct ModelToServe {
  std::string name;
  std::string path;                                 // as versions_at() takes it
  std::optional<std::int64_t> pin = {};             // this version alone; unset: the newest
  std::map<std::string, std::int64_t> labels = {};  // further versions, by label
  // The file with a retrieval model's candidates. Empty: kCandidatesFile in the folder of the
  // version or in `path`, if it is there.
  std::string candidates = {};
  // The ps of a run whose rows it follows, as follower.h has it, instead of later versions. Unset:
  // it follows none.
  RowsOfRun follow = {};
  // Tables stay on that run's ps, and their rows are read from there for each batch; one that does
  // not come within `ps_patience` counts as what it was last.
  bool from_ps = false;
  Duration ps_patience = std::chrono::milliseconds(100);
};

struct DirectoryOptions {
  int threads = 1;                                // that compute
  Duration look_every = std::chrono::seconds(1);  // zero: only when asked to look
  // Bytes of memory for all models; tables that do not fit are read from disk. 0: no limit.
  std::size_t memory_limit = 0;
  ReadCandidates read_candidates = {};  // empty: no version has candidates
  CandidateIndexOptions index = {};
};

// A version that serves.
struct ServedVersion {
  std::string model;
  std::int64_t version = 0;
  std::shared_ptr<const ServedModel> served;
  // For the computing threads by their numbers, and for one more.
  std::shared_ptr<VersionCodecs> codecs;
  std::shared_ptr<const VersionCandidates> candidates = {};  // null: it recommends nothing
  std::shared_ptr<const Follower> follower = {};             // null: its rows do not change
};

struct VersionStatus {
  enum class State : std::uint8_t { kLoading, kAvailable, kRefused };
  std::int64_t version = 0;
  State state = State::kLoading;
  Code code = Code::kUnknown;  // of a refused one
  std::string error;           // why it was refused
};

class ModelDirectory {
 public:
  //   Errors  InvalidArgument: two models of one name, a name with '/' or ':', or none; a memory
  //           limit that is too small for any model. Those of versions_at().
  ModelDirectory(std::vector<ModelToServe> models, DirectoryOptions options);
  ~ModelDirectory();
  ModelDirectory(const ModelDirectory&) = delete;
  ModelDirectory& operator=(const ModelDirectory&) = delete;

  // The version that a request means: that number, that label, or else the newest that serves.
  //   Errors  NotFound: no such model, version or label; names the nearest, or those that there
  //           are. Unavailable: the model has no version that serves yet.
  ServedVersion find(const std::string& model, std::optional<std::int64_t> version = {},
                     const std::string& label = "") const;
  std::vector<std::string> names() const;
  // Newest first. NotFound as find().
  std::vector<VersionStatus> status(const std::string& model) const;
  // Counts of the model's reads. NotFound as find().
  std::shared_ptr<const ReadCounters> reads(const std::string& model) const;
  // The limit and what it is used for; null: there is none.
  const MemoryBudget* memory() const;
  // Whether every model has a version that serves.
  bool ready() const;
  // Looks at the places now, and returns when what was found there has been loaded or refused.
  //   Thread  any that may block on files.
  void look();
  // The same on the directory's own thread, which calls `done` afterwards.
  void look_soon(std::function<void()> done);
  // Ends all loading within moments: what is being loaded is given up, and nothing is looked for
  // from now on. The versions that serve stay. Callers of look_soon() are called back.
  void give_up();
  // A request that the model has answered, to warm the next version with; a few are kept.
  // `queries`: the columns are those of a query to recommend for.
  void remember(const std::string& model, const Element& columns, bool queries = false);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::serving
