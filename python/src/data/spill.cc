// Tables that are too large for a description, written to files once.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"
#include "data/feature/hash.h"
#include "data/format/column_files.h"
#include "tables.h"

namespace cairn::python {
namespace {

std::uint64_t checksum_of(std::span<const std::int64_t> numbers) {
  return checksum(std::as_bytes(numbers));
}

// The name of a column's file tells what is in it.
std::string name_of(const Tensor& values) {
  std::vector<std::int64_t> parts = values.shape().dims();
  parts.push_back(static_cast<std::int64_t>(values.dtype()));
  if (values.dtype() == DType::kString) {
    std::vector<std::int64_t> sizes;
    std::uint64_t mixed = 0;
    for (const std::string& text : values.string_values()) {
      sizes.push_back(static_cast<std::int64_t>(text.size()));
      mixed = mixed * 0x9E3779B97F4A7C15 + checksum(std::as_bytes(std::span(text)));
    }
    parts.push_back(static_cast<std::int64_t>(checksum_of(sizes)));
    parts.push_back(static_cast<std::int64_t>(mixed));
  } else {
    parts.push_back(static_cast<std::int64_t>(checksum(std::span(values.raw(), values.bytes()))));
  }
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(checksum_of(parts)));
  return hex;
}

std::int64_t bytes_of(const Columns& columns) {
  std::int64_t bytes = 0;
  for (const auto& [name, values] : columns) {
    bytes += static_cast<std::int64_t>(values.bytes());
    if (values.dtype() != DType::kString) continue;
    for (const std::string& text : values.string_values())
      bytes += static_cast<std::int64_t>(text.size() + sizeof(std::int64_t));
  }
  return bytes;
}

void make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return;
  const std::string why = std::strerror(errno);
  if (errno == ENOENT) throw NotFoundError(str("the folder ", folder, " cannot be made: ", why));
  throw PermissionDeniedError(str("the folder ", folder, " cannot be made: ", why));
}

// Columns are hashed and written side by side: a disk takes several files at once.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& run) {
  constexpr std::size_t kThreadsMax = 4;
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;  // failure
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        run(i);
      } catch (...) {
        const std::lock_guard hold(mutex);
        failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(count, kThreadsMax); ++i) threads.emplace_back(take);
    take();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

Dataset written(const Columns& columns, const std::string& label, const std::string& folder) {
  make_folder(folder);
  // Workers have another working directory.
  const std::string root = std::filesystem::absolute(folder).string();
  std::vector<std::string> paths(columns.size());
  in_parallel(columns.size(), [&](std::size_t i) {
    paths[i] = str(root, "/", name_of(columns[i].second), ".column");
  });
  // Equal columns are one file, which two threads must not write.
  std::vector<std::size_t> missing;
  std::set<std::string> known;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (known.insert(paths[i]).second && !std::filesystem::exists(paths[i])) missing.push_back(i);
  in_parallel(missing.size(), [&](std::size_t i) {
    write_column_file(paths[missing[i]], columns[missing[i]].second);
  });
  std::vector<IdxColumn> files;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto& [name, values] = columns[i];
    files.push_back({name, {paths[i]}, values.dtype(), values.shape().without_front()});
  }
  return column_files(std::move(files), label);
}

using Spec = std::shared_ptr<const StageSpec>;

Spec spilled(const Spec& spec, const std::string& folder, std::int64_t bytes_min) {
  if (spec == nullptr) return spec;
  if (const auto* tensors = std::get_if<TensorsSpec>(&spec->kind)) {
    if (bytes_of(tensors->columns) <= bytes_min) return spec;
    return written(tensors->columns, tensors->label, folder).last();
  }
  if (const auto* generator = std::get_if<GeneratorSpec>(&spec->kind)) {
    const std::shared_ptr<const Columns> columns = columns_behind(generator->begin.get());
    if (columns == nullptr) return spec;
    return written(*columns, spec->element.label, folder).last();
  }
  auto copy = std::make_shared<StageSpec>(*spec);
  if (auto* service = std::get_if<ServiceSpec>(&copy->kind))
    service->dataset = spilled(service->dataset, folder, bytes_min);
  copy->input = spilled(spec->input, folder, bytes_min);
  for (Spec& other : copy->others) other = spilled(other, folder, bytes_min);
  return copy;
}

}  // namespace

Dataset spilled(const Dataset& dataset, const std::string& folder, std::int64_t bytes_min) {
  return Dataset(spilled(dataset.last(), folder, bytes_min));
}

}  // namespace cairn::python
