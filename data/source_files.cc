// Which files a source reads, and the same source over some of them: for interleave(), which opens
// one at a time, and for dealing files out to workers.
#include "data/stage_spec.h"

namespace cairn {

bool reads_files(const StageSpec& source) {
  return std::visit(
      [](const auto& kind) {
        return requires { kind.paths; };
      },
      source.kind);
}

std::vector<std::string> paths_of(const StageSpec& source) {
  return std::visit(
      [](const auto& kind) -> std::vector<std::string> {
        if constexpr (requires { kind.paths; }) return kind.paths;
        CAIRN_CHECK(false, "a stage without files");
      },
      source.kind);
}

std::size_t file_count(const StageSpec& source) { return paths_of(source).size(); }

std::shared_ptr<StageSpec> source_of_files(const StageSpec& source,
                                           const std::vector<std::size_t>& files) {
  auto made = std::make_shared<StageSpec>(source);
  std::visit(
      [&](auto& kind) {
        if constexpr (requires { kind.paths; }) {
          std::vector<std::string> paths;
          for (const std::size_t file : files) paths.push_back(kind.paths[file]);
          kind.paths = std::move(paths);
        }
      },
      made->kind);
  return made;
}

std::shared_ptr<StageSpec> source_of_file(const StageSpec& source, std::size_t file) {
  return source_of_files(source, {file});
}

}  // namespace cairn
