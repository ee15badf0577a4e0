// JobFormat: what a job file says of data of one format, in a table [data.NAME] of its own. What
// differs between formats is asked of it; the rest of the program knows none by name.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/file_source.h"
#include "data/dataset/schema.h"
#include "tools/job/spec/job_columns.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {

struct Job;
struct JobLabel;
class JobFormat;

using JobFormatPtr = std::shared_ptr<const JobFormat>;

// The form in which models read such data.
enum class FeatureForm : std::uint8_t {
  kColumns,  // features that [features] makes of its columns
  kNumbers,  // its fields as they are, which are ready; files tell how many examples they hold
  kBag,      // one bag of ids, each with a value
};

// The columns of a kBag.
struct IdBag {
  std::string ids, values;
  std::int64_t rows = 0;  // ids lie below it
};

// Throws InvalidArgument with the place of the key in the job file.
using RefuseKey = std::function<void(const std::string& key, const std::string& why)>;

// Thread: immutable, once it has been read; copies of a job share it.
class JobFormat {
 public:
  virtual ~JobFormat() = default;
  virtual const char* name() const = 0;
  // The endings of files that are most likely of this format, with their dots.
  virtual std::vector<std::string> endings() const { return {}; }
  // Whether there is a table of that name.
  virtual bool has_table() const { return true; }
  // Reads the table, and refuses keys that are none. `files`: the training data.
  //   Errors  InvalidArgument: file, line and what is wrong.
  virtual void read(TomlTable table, JobLabel& truth, const std::vector<std::string>& files) = 0;
  // Refuses what such data does not have, once the whole job is known.
  virtual void verify(const Job&, const RefuseKey&) const {}

  virtual FeatureForm form() const { return FeatureForm::kColumns; }
  virtual std::vector<ColumnType> columns() const = 0;
  // Whether the columns are those of the format, and not named by the job.
  virtual bool fixed_columns() const { return false; }
  // The schema of data that consists of cells of text; null: it has other columns.
  virtual const CsvSchema* cells() const { return nullptr; }
  virtual IdBag bag() const { return {}; }
  // How a column is made one of dates.
  virtual std::string date_cure(const std::string& column) const;

  // The column of the label; empty: none was named. And the key that names it.
  virtual const std::string& label() const = 0;
  virtual std::string label_key() const;
  // The rule by which texts become labels; null: there are none.
  virtual const CsvLabel* label_texts() const { return nullptr; }
  // Refuses a label that is not what the objective wants.
  virtual void verify_label(const Job&, const std::string& key) const { (void)key; }
  // The labels as texts, of files whose labels have texts: in the column of the label, or the only
  // one. Rows that do not fit are left out. And the label in one of these texts, if there is one.
  virtual Dataset label_rows(const std::vector<std::string>& files,
                             const std::vector<std::string>& where) const;
  virtual std::optional<std::string> label_in(const std::string& text) const { return text; }

  // The data, as the job reads it. Lines are left out as they are parsed; of the other formats
  // every example is made before `where` is asked.
  virtual Dataset source(const Job& job, const std::vector<std::string>& files,
                         const std::vector<std::string>& where) const = 0;
  // The format of data to predict, which has no label, and may lack these columns where it names
  // them.
  virtual JobFormatPtr to_predict(const std::set<std::string>& needless) const = 0;
};

// ---- all of them ----
// In the order of the documentation.
const std::vector<JobFormatPtr>& job_formats();
// An unread format of that name; that of csv if there is none.
std::shared_ptr<JobFormat> make_job_format(const std::string& name);
// Their names.
const std::vector<std::string>& data_formats();

// The ending of the first file that names a format, without that of its compression; empty: none
// does.
std::string telling_ending(const std::vector<std::string>& files);

// Writes into [data] of a job what it left to the names of its training files: format and
// delimiter. `source` is what these were read as.
void name_format(const FileSource& source, toml::table& data);

// ---- what several formats ask ----
// Whether what the label's column holds is the truth of a binary cross-entropy.
bool has_binary_label(const Job& job);
// The number of classes if the label is a class's number; else 0.
std::int64_t label_classes(const Job& job, const std::string& label);
// The bounds of ids of a column with so many values per example.
IdRange ids_of_column(const Job& job, const std::string& column, std::int64_t values);

namespace detail {
// Those of cells of text, in job_format_cells.cc.
std::vector<std::shared_ptr<JobFormat>> cell_formats();
}  // namespace detail

}  // namespace cairn::tools
