// CandidateRows: the distinct candidates of files in the form of a retrieval model's training data,
// each with its vector, from its first row.
//   Thread  one, that may block on files.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "model/saved/loaded_model.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

struct CandidateFiles {
  std::string model;               // the folder of a saved model
  std::vector<std::string> files;  // in the form of the training data
  std::int64_t batch = 4096;
  bool skip_bad_rows = false;
  std::string device = "cpu:0";
};

// A candidate's name is a number, or a text.
struct CandidateName {
  std::int64_t number = 0;
  const std::string* text = nullptr;  // null: it is the number
};

class CandidateRows {
 public:
  // Loads the model.
  //   Errors  FailedPrecondition: it is no retrieval model, or not of `cairn train`. Those of
  //           loading.
  explicit CandidateRows(const CandidateFiles& files);

  std::int64_t width() const { return width_; }
  std::int64_t step() const { return model_.about().global_step; }  // of the model's weights

  struct Count {
    std::int64_t rows = 0, candidates = 0;
    std::uint64_t text_bytes = 0;  // of all names that are texts
    bool is_text = false;
  };
  // Reads the files once.
  //   Errors  InvalidArgument: they have no example. Those of reading.
  Count count() const;

  using TakeCandidate =
      std::function<void(const CandidateName& name, std::span<const float> vector)>;
  // Reads them again, in the order of the data: calls `candidate` at the first row of each.
  //   Cost    the names of all candidates in memory.
  //   Errors  those of reading and of running.
  void each(const TakeCandidate& candidate);

 private:
  Dataset rows() const;
  std::size_t output(const char* name) const;

  const std::int64_t batch_;
  LoadedModel model_;
  Job job_;
  std::size_t candidate_ = 0;  // the place of its output
  std::size_t name_ = 0;       // the place of the candidate's column
  std::int64_t width_ = 0;
};

}  // namespace cairn::tools
