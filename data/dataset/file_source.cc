// Which files a source reads, and the same source over some of them: for interleave(), which opens
// one at a time, and for dealing files out to workers.
#include "data/dataset/file_source.h"

#include "core/base/error.h"
#include "data/dataset/dataset.h"

namespace cairn {
namespace {

std::shared_ptr<StageSpec> with_source(const StageSpec& stage, FileSourcePtr source) {
  auto made = std::make_shared<StageSpec>(stage);
  made->kind = FilesSpec{std::move(source)};
  return made;
}

}  // namespace

FileSourcePtr FileSource::reading(std::vector<std::string> files) const {
  check_paths(files);
  return over({std::move(files)});
}

FileSourcePtr FileSource::without_column(const std::string&) const { return nullptr; }

std::int64_t FileSource::count(const LineEvents&) const {
  CAIRN_CHECK(false, "only reading tells how many rows there are");
}

Dataset dataset_of(FileSourcePtr source) {
  auto stage = std::make_shared<StageSpec>();
  stage->element = source->element();
  stage->kind = FilesSpec{std::move(source)};
  return Dataset(std::move(stage));
}

const FileSource* file_source_of(const StageSpec& stage) {
  const auto* files = std::get_if<FilesSpec>(&stage.kind);
  return files == nullptr ? nullptr : files->source.get();
}

bool reads_files(const StageSpec& source) { return file_source_of(source) != nullptr; }

std::size_t file_count(const StageSpec& stage) {
  const FileSource* source = file_source_of(stage);
  return source == nullptr ? 0 : source->files().front().size();
}

std::vector<std::string> paths_of(const StageSpec& stage) {
  std::vector<std::string> all;
  if (const FileSource* source = file_source_of(stage))
    for (const auto& list : source->files()) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::shared_ptr<StageSpec> source_of_files(const StageSpec& stage,
                                           const std::vector<std::size_t>& files) {
  const FileSource* source = file_source_of(stage);
  if (source == nullptr) return std::make_shared<StageSpec>(stage);
  FileLists kept;
  for (const auto& list : source->files()) {
    auto& paths = kept.emplace_back();
    for (const std::size_t file : files) paths.push_back(list[file]);
  }
  return with_source(stage, source->over(std::move(kept)));
}

std::shared_ptr<StageSpec> source_of_file(const StageSpec& stage, std::size_t file) {
  return source_of_files(stage, {file});
}

}  // namespace cairn
