// Which files a source reads, and the same source over some of them: for interleave(), which opens
// one at a time, and for dealing files out to workers.
#include "data/stage_spec.h"

namespace cairn {
namespace {

// The lists of files of a source: one, or one of each column.
template <typename Kind, typename Visit>
void each_list(Kind& kind, Visit visit) {
  if constexpr (requires { kind.paths; }) {
    visit(kind.paths);
  } else if constexpr (std::is_same_v<std::remove_const_t<Kind>, IdxSpec>) {
    for (auto& column : kind.columns) visit(column.paths);
  }
}

}  // namespace

bool reads_files(const StageSpec& source) { return file_count(source) > 0; }

std::vector<std::string> paths_of(const StageSpec& source) {
  std::vector<std::string> all;
  const auto add = [&](const auto& paths) { all.insert(all.end(), paths.begin(), paths.end()); };
  std::visit([&](const auto& kind) { each_list(kind, add); }, source.kind);
  return all;
}

std::size_t file_count(const StageSpec& source) {
  std::size_t count = 0;
  const auto take = [&](const auto& paths) { count = paths.size(); };
  std::visit([&](const auto& kind) { each_list(kind, take); }, source.kind);
  return count;
}

std::shared_ptr<StageSpec> source_of_files(const StageSpec& source,
                                           const std::vector<std::size_t>& files) {
  auto made = std::make_shared<StageSpec>(source);
  const auto keep = [&](auto& paths) {
    std::vector<std::string> kept;
    for (const std::size_t file : files) kept.push_back(paths[file]);
    paths = std::move(kept);
  };
  std::visit([&](auto& kind) { each_list(kind, keep); }, made->kind);
  return made;
}

std::shared_ptr<StageSpec> source_over(const StageSpec& source, std::vector<std::string> paths) {
  check_paths(paths);
  auto made = std::make_shared<StageSpec>(source);
  const bool replaced = std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.paths; }) {
          kind.paths = std::move(paths);
          return true;
        } else {
          return false;
        }
      },
      made->kind);
  if (!replaced)
    throw InvalidArgumentError("only a source of one list of files can read other ones");
  return made;
}

std::shared_ptr<StageSpec> source_of_file(const StageSpec& source, std::size_t file) {
  return source_of_files(source, {file});
}

}  // namespace cairn
