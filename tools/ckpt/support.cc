#include "tools/ckpt/support.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "core/disk/disk.h"
#include "storage/any_disk.h"
#include "storage/manifest.h"
#include "storage/object_store/object_disk.h"

namespace cairn::tools::ckpt {
namespace {

template <typename T>
double number_at(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

std::uint16_t half_at(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

}  // namespace

void print_json(const Json& json) { std::printf("%s\n", json_text(json, 2).c_str()); }

std::string time_text(std::int64_t microseconds) {
  const std::time_t seconds = microseconds / 1'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts)};
}

std::string megabytes(std::uint64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double element_value(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kFloat32: return number_at<float>(at);
    case DType::kFloat64: return number_at<double>(at);
    case DType::kInt32: return number_at<std::int32_t>(at);
    case DType::kInt64: return number_at<std::int64_t>(at);
    case DType::kBool:
    case DType::kUint8: return number_at<std::uint8_t>(at);
    case DType::kBfloat16: return static_cast<double>(from_bfloat16(half_at(at)));
    case DType::kFloat16: return static_cast<double>(from_float16(half_at(at)));
    case DType::kString: break;
  }
  throw InternalError(str("a row of ", dtype_name(dtype)));
}

Progress::Progress(std::string doing, std::uint64_t bytes_in_all)
    : doing_(std::move(doing)), all_(bytes_in_all), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::add(std::uint64_t bytes) {
  done_ += bytes;
  if (terminal_) show();
}

void Progress::show() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const double share = all_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(all_);
  std::fprintf(stderr, "\r\033[K%s: %3.0f %%, %s", doing_.c_str(), 100 * std::fmin(share, 1),
               megabytes(done_).c_str());
  std::fflush(stderr);
}

bool is_checkpoint(const std::string& path) {
  return storage::any_disk().exists(path + "/" + storage::kManifestFile);
}

void verify_local(const std::string& file) {
  if (storage::is_object_path(file))
    throw InvalidArgumentError(str(file,
                                   " is in a bucket: arrays are read and written as files of "
                                   "this machine; only checkpoints may lie there"));
}

void raise_removed(const std::string& path, const Error& error) {
  throw NotFoundError(str(
      "the checkpoint ", path,
      " was removed while it was read: a training keeps its newest ones alone (keep_last). Take "
      "a newer one, which `cairn ckpt ls` lists. What met its end: ",
      error.what()));
}

}  // namespace cairn::tools::ckpt
