// FileSource: the source of a description that reads files of one format. Each format is a class
// below data/format/, which checks its schema, counts and opens its files, and writes itself. What
// handles descriptions asks it through these calls, and knows no format by name.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/element.h"
#include "data/dataset/lines_read.h"
#include "data/dataset/open_bytes.h"
#include "data/dataset/pipes.h"
#include "data/dataset/schema.h"
#include "data/dataset/stage_spec.h"

namespace cairn {

class Dataset;
class Stage;

// How a source reads its files.
struct SourceOptions {
  LineEvents events = {};
  Pipes pipes = Pipes::kRefuse;
  OpenBytes open_bytes = {};  // empty: files on disk
};

// A request to open a source: its own stage, and the stages above that it takes over.
struct SourceRequest {
  std::shared_ptr<const StageSpec> stage;
  ShardSpec shard = {};
  std::shared_ptr<const StageSpec> features = nullptr;  // a FeaturesSpec
  SourceOptions options = {};
};

// The stages directly above a source whose work it does itself, since it can do it before records
// are parsed.
enum class TakesOver : std::uint8_t { kNothing, kShard, kShardAndFeatures };

// Files one after another; a format whose columns have files of their own has one such list for
// each, and the first files of all lists belong together, then the second ones, and so on.
using FileLists = std::vector<std::vector<std::string>>;

// A description's place on the wire (data/format/wire_parts.h).
struct StageWriter;
struct StageReader;

// Thread: immutable, and shared by descriptions.
class FileSource {
 public:
  virtual ~FileSource() = default;

  // The name of the format, as job files have it: "csv".
  virtual const char* format() const = 0;
  // The columns in the order of the schema, without those that are skipped.
  //   Errors  InvalidArgument: the schema or the files do not fit together.
  virtual ElementSpec element() const = 0;

  // All lists have the same length.
  virtual FileLists files() const = 0;
  // The same columns from other files, in as many lists.
  virtual FileSourcePtr over(FileLists files) const = 0;
  // The same columns from the files that a user names, in the order of the columns if each has its
  // own. A label that has a file of its own may then be left out.
  //   Errors  InvalidArgument: no files, or a wrong number of them.
  virtual FileSourcePtr reading(std::vector<std::string> files) const;
  // The same files where the column may be missing; nullptr: the format has no need for that, or a
  // condition reads the column.
  virtual FileSourcePtr without_column(const std::string& column) const;
  virtual FileSourcePtr with_on_error(OnError on_error) const = 0;

  // Whether count() knows the number of rows without parsing them.
  virtual bool counts() const { return false; }
  //   Errors  those of opening the files.
  virtual std::int64_t count(const LineEvents& events) const;

  // The schema of the columns if records are cells of text; otherwise nullptr.
  virtual const CsvSchema* cell_schema() const { return nullptr; }
  // Whether its records are text, which open() reads from SourceOptions::open_bytes as well.
  virtual bool is_text() const { return false; }
  virtual TakesOver takes_over() const { return TakesOver::kShard; }
  //   Errors  NotFound: a file is missing.
  virtual std::unique_ptr<Stage> open(SourceRequest request) const = 0;

  virtual void write(StageWriter& out) const = 0;
};

// A source of one list of files, with a schema and options.
template <typename Derived, typename Schema, typename Options>
struct FilesOf : FileSource {
  FilesOf(std::vector<std::string> paths_, Schema schema_, Options options_)
      : paths(std::move(paths_)), schema(std::move(schema_)), options(std::move(options_)) {}

  FileLists files() const final { return {paths}; }
  FileSourcePtr over(FileLists lists) const final {
    return changed([&](Derived& copy) { copy.paths = std::move(lists.front()); });
  }
  FileSourcePtr with_on_error(OnError on_error) const final {
    return changed([&](Derived& copy) { copy.options.on_error = on_error; });
  }

  std::vector<std::string> paths;
  Schema schema;
  Options options;

 protected:
  template <typename Change>
  FileSourcePtr changed(Change change) const {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    change(*copy);
    return copy;
  }
};

// The dataset of a source, once it has been checked.
//   Errors  those of FileSource::element().
Dataset dataset_of(FileSourcePtr source);
// The source of files that a stage is; nullptr: it is another stage.
const FileSource* file_source_of(const StageSpec& stage);
// The same if it is of this format.
template <typename Format>
const Format* file_source_as(const StageSpec& stage) {
  return dynamic_cast<const Format*>(file_source_of(stage));
}

}  // namespace cairn
