// Shared by the subcommands of `cairn ckpt`: how they print, tell their progress, and say that a
// checkpoint went while it was read.
//   Thread  one, where nothing else is said.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/tensor/tensor.h"

namespace cairn::tools::ckpt {

// Every subcommand has --json, for scripts.
enum class Form { kText, kJson };
void print_json(const Json& json);

// The exit statuses of all of them: errors are 1 too, but for wrong use.
inline constexpr int kFine = 0, kFound = 1;

std::string time_text(std::int64_t microseconds);  // since 1970 UTC
std::string megabytes(std::uint64_t bytes);        // "1.20 MB"
// A number as JSON: null where it is not finite, which JSON has no word for.
Json json_number(double value);
// The element that lies there, of any dtype that a checkpoint holds, as a number.
double element_value(DType dtype, const std::byte* at);

// One line on standard error, if that is a terminal, that is written over a few times a second.
class Progress {
 public:
  Progress(std::string doing, std::uint64_t bytes_in_all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void add(std::uint64_t bytes);

 private:
  void show();
  std::string doing_;
  std::uint64_t all_, done_ = 0;
  bool terminal_, shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

// Whether there is a checkpoint in this folder, which has a manifest.
bool is_checkpoint(const std::string& path);
// InvalidArgument: a file of arrays, which is read and written by place, is named in a bucket.
void verify_local(const std::string& file);
// NotFound: the checkpoint went while it was read.
[[noreturn]] void raise_removed(const std::string& path, const Error& error);

// Runs `work`, which reads the checkpoint at `path`. A training that saves beside us removes its
// old checkpoints: an error of reading is then that, and no damage.
template <typename Work>
auto reading(const std::string& path, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    if (is_checkpoint(path)) throw;
    raise_removed(path, error);
  }
}

}  // namespace cairn::tools::ckpt
